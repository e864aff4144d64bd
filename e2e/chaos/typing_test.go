package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
)

// answers counts and echoes lines, so that a lost or repeated line shows.
const answers = `import sys
for n, line in enumerate(sys.stdin, 1):
    print(n, line.rstrip())
print("over")
`

// A client types to a program on a remote worker through one server, while the worker is connected to the other. Both servers are killed in
// the middle and the worker's connection is cut, and every line arrives once, in the first attempt.
func TestTypingThroughReplicas(t *testing.T) {
	t.Parallel()
	db := shared(t)
	if !strings.Contains(db.dsn, "@") {
		t.Skipf("NOT TESTED: %s is %q, which names no server", dsnVar, db.dsn)
	}
	dsn, dir := db.named(t), t.TempDir()
	var servers []*part
	var addrs []string
	for i := range 2 {
		addr := "127.0.0.1:" + programtest.FreePort(t)
		addrs = append(addrs, addr)
		servers = append(servers, run(t, dir, fmt.Sprintf("server-%d", i), "server", "--listen", addr, "--no-worker",
			"--state-dir", filepath.Join(dir, fmt.Sprintf("state-%d", i)), "--store", dsn, "--grace", "1s"))
	}
	toWork := newProxy(t, addrs[1])
	run(t, dir, "worker", "worker", "--server", "http://"+toWork.address(), "--slots", "2", "--runtime", "process",
		"--state-dir", filepath.Join(dir, "work"), "--grace", "1s")
	c := connect(t, addrs[0])
	ready(t, c)
	ready(t, connect(t, addrs[1]))
	x, err := c.Evaluate(t.Context(), api.Evaluation{Retry: &api.Retry{MaxAttempts: 3},
		Code: api.Code{Language: "python", Source: answers, Interactive: true, Limits: api.CodeLimits{Wall: api.Duration(10 * time.Minute)}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	heard := make(chan string, 1000)
	go hear(ctx, c, x.ID, heard)

	w := c.WriteStdin(ctx, x.ID, 0)
	n, want := 0, ""
	typed := func() time.Duration {
		t.Helper()
		n++
		began := time.Now()
		for {
			// The client gives up after a few tries, and the typist continues where it stopped.
			_, err := fmt.Fprintf(w, "line %d\n", n)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("line %d: %v", n, err)
			}
		}
		line := fmt.Sprintf("%d line %d\n", n, n)
		want += line
		for got := ""; got != line; {
			select {
			case s := <-heard:
				got += s
				if !strings.HasPrefix(line, got) {
					t.Fatalf("heard %q, want %q", got, line)
				}
			case <-ctx.Done():
				t.Fatalf("line %d: heard %q, want %q", n, got, line)
			}
		}
		return time.Since(began)
	}
	var took []time.Duration
	for range 50 {
		took = append(took, typed())
	}
	slices.Sort(took)
	t.Logf("typed at one server and answered through the other: p50 %s, p95 %s", took[24], took[47])
	if took[24] > 300*time.Millisecond { // 25 ms on an idle machine; this one is busy
		t.Errorf("the answer to a line takes %s", took[24])
	}
	for _, fault := range []func(){
		func() { servers[0].kill(0) }, func() { servers[1].kill(0) },
		func() { toWork.setCut(true); toWork.setCut(false) },
		func() { servers[0].kill(0); servers[1].kill(0) },
	} {
		fault()
		for range 3 {
			typed()
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	end, err := c.Wait(ctx, x.ID)
	if err != nil || end.Status != api.Completed || end.Attempt != 1 || !strings.Contains(string(end.Output), "over") {
		t.Errorf("%+v, %v", end, err)
	}
}

// hear passes on an execution's output, over as many connections as needed.
func hear(ctx context.Context, c *client.Client, id string, to chan<- string) {
	var q client.LogQuery
	for ctx.Err() == nil {
		for chunk, err := range c.FollowLogs(ctx, id, q) {
			if err != nil {
				break
			}
			q.After = client.AfterLog(chunk)
			to <- string(chunk.Bytes())
		}
	}
}
