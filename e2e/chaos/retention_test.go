package chaos

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

var soak = flag.Duration("chaos.soak", 20*time.Second, "how long work and retention go on side by side")

// Workflows whose tasks take slots of keys that are in steady use and free at moments: retention removes the row of such a key while a
// workflow's next step creates it.
const soaking = `
name: keyed
tasks:
  nap: {action: sleep, with: {for: 20ms}}
  last: {needs: [nap], action: noop, concurrency: {key: soak, limit: 5}}
---
name: wide
tasks:
  each: {foreach: "${{ [1, 2, 3, 4] }}", concurrency: 2, action: noop, with: {n: "${{ item }}"}}
  inner: {needs: [each], foreach: "${{ ['a', 'b'] }}", action: inner, with: {key: "${{ item }}"}}
  last: {needs: [inner], action: noop, concurrency: {key: soak-wide, limit: 1}}
---
name: inner
input: {type: object}
tasks:
  nap: {action: sleep, with: {for: 5ms}}
  last: {needs: [nap], action: noop, concurrency: {key: "${{ 'soak-' + input.key }}", limit: 2}}
`

const (
	soakRetention = 3 * time.Second
	// longestStall bounds how long a workflow of some 30 ms may take, and how long retention may remove nothing while there is work.
	longestStall = 10 * time.Second
)

// Retention runs beside work whose keys come and go: no workflow stalls, retention goes on, and PostgreSQL ends no wait for a lock.
func TestChaosRetention(t *testing.T) {
	t.Parallel()
	db := own(t)
	dsn, addr, dir := db.named(t), "127.0.0.1:"+programtest.FreePort(t), t.TempDir()
	run(t, dir, "server", "server", "--listen", addr, "--state-dir", filepath.Join(dir, "state"), "--store", dsn, "--runtime", "process",
		"--slots", "4", "--retention", soakRetention.String(), "--grace", "1s")
	c, err := client.New("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	ready(t, c)
	if _, err := c.Define(t.Context(), []byte(soaking), "soaking.yaml"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), *soak)
	defer stop()
	var all sync.WaitGroup
	var mu sync.Mutex
	took := map[string][]time.Duration{}
	for i, s := range []api.Submission{
		{Action: "keyed"}, {Action: "keyed"}, {Action: "keyed"}, {Action: "wide"}, {Action: "noop", Concurrency: &api.Concurrency{Key: "soak", Limit: 5}},
	} {
		all.Go(func() {
			for ctx.Err() == nil {
				d, err := lasts(c, s)
				if err != nil {
					t.Errorf("loop %d, %s: after %s: %v", i, s.Action, d, err)
					stop()
					return
				}
				mu.Lock()
				took[s.Action] = append(took[s.Action], d)
				mu.Unlock()
				<-time.After(30 * time.Millisecond) // the key is free meanwhile
			}
		})
	}
	all.Go(func() {
		if err := keepsRemoving(ctx, addr); err != nil {
			t.Error(err)
			stop()
		}
	})
	all.Wait()
	for action, ds := range took {
		slices.Sort(ds)
		t.Logf("%-5s %5d times, p50 %s, p99 %s, at most %s", action, len(ds), quantile(ds, 0.5), quantile(ds, 0.99), ds[len(ds)-1])
	}
	if n := removed(t, addr); n == 0 {
		t.Error("nothing was removed: the test has tested nothing")
	} else {
		t.Logf("%d executions were removed", n)
	}
	for _, say := range []string{"lock timeout", "deadlock detected", "statement timeout"} {
		if n := db.logged(say); n > 0 {
			t.Errorf("PostgreSQL logged %d times: %s", n, say)
		}
	}
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{AsIs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	broken, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Errorf("invariant %d: %s: %s", b.Invariant, b.Execution, b.Say)
	}
}

// lasts runs a submission to its end and returns how long that took, or an error when it stalls.
func lasts(c *client.Client, s api.Submission) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longestStall)
	defer cancel()
	began := time.Now()
	x, err := c.Submit(ctx, s)
	if err == nil {
		x, err = c.Wait(ctx, x.ID)
	}
	if err == nil && x.Status != api.Completed {
		err = fmt.Errorf("it is %s: %+v", x.Status, x.Error)
	}
	return time.Since(began), err
}

// keepsRemoving returns an error when retention removes nothing for longer than it may, and nil when ctx ends.
func keepsRemoving(ctx context.Context, addr string) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	last, since := 0, time.Now().Add(soakRetention)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		n, err := removals(addr)
		switch {
		case err == nil && n > last:
			last, since = n, time.Now()
		case time.Since(since) > longestStall:
			return fmt.Errorf("retention has removed nothing for %s, and %d executions before: %v", longestStall, last, err)
		}
	}
}

func removed(t *testing.T, addr string) int {
	t.Helper()
	n, err := removals(addr)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var purged = regexp.MustCompile(`(?m)^pawl_executions_purged_total (\S+)$`)

// removals returns how many executions retention has removed, by a server's metric.
func removals(addr string) (int, error) {
	res, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	m := purged.FindSubmatch(b)
	if m == nil {
		return 0, fmt.Errorf("/metrics has no %s", purged)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	return int(n), err
}
