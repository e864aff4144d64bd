// Package neighbour runs the most expensive requests that the API accepts from one client beside the plain work of another, on one server:
// none of the other's work may be lost, refused or late.
package neighbour

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// The defaults are those of make test, on machines that are busy with other tests: there the figures are printed, and the bound of the
// lateness only finds a server that hangs. make chaos asserts one second.
var (
	span = flag.Duration("neighbour.for", 6*time.Second, "how long both clients work, on each store")
	late = flag.Duration("neighbour.late", 20*time.Second, "how late an answer to the plain work may be")
	only = flag.String("neighbour.act", "", "do only this of the hostile work")
	seed = flag.Uint64("neighbour.seed", 0, "the seed of the hostile work; 0: one of its own")
)

const (
	hostileClients = 4
	// plainQueue is served by a worker of its own: the test is about the server, which both clients share, and not about slots.
	plainQueue = "plain"
	// quietWithin bounds how long the hostile work takes to end once it is cancelled.
	quietWithin = time.Minute
)

func TestSQLite(t *testing.T)     { onServer(t, startOnSQLite(t)) }
func TestPostgreSQL(t *testing.T) { onServer(t, startOnPostgres(t)) }

func onServer(t *testing.T, s *server) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d for %s: go test ./e2e/neighbour -run '%s$' -neighbour.seed %d -neighbour.for %s", *seed, *span, t.Name(), *seed, *span)
	ctx, stop := context.WithTimeout(t.Context(), *span)
	defer stop()
	h := newHostile(t, s.address)
	var all sync.WaitGroup
	for i := range hostileClients {
		all.Go(func() { h.run(ctx, rand.New(rand.NewPCG(*seed, uint64(i)))) })
	}
	plain := &plainWork{t: t, address: s.address, took: map[string][]time.Duration{}}
	for i := range 2 {
		all.Go(func() { plain.run(ctx, "noop", func(int) time.Duration { return 0 }) })
		all.Go(func() {
			plain.run(ctx, "sleep", func(n int) time.Duration { return time.Duration(100+(n+3*i)%7*100) * time.Millisecond })
		})
	}
	machine := stalls(ctx)
	all.Wait()
	t.Logf("hostile work: %v", h.done)
	stalled := <-machine
	plain.report(stalled)
	if *only == "" {
		s.transactions(t, *late+stalled)
	}
	h.withdraw(t)
	s.verify(t)
}

// plainWork is the work of the other client: it submits one execution after the other and waits for each.
type plainWork struct {
	t       *testing.T
	address string

	mu   sync.Mutex
	took map[string][]time.Duration // lateness, by action
}

// run submits an action again and again, which lasts lasts(n) the n-th time, and notes how much later than that the client knew its end.
func (p *plainWork) run(ctx context.Context, action string, lasts func(n int) time.Duration) {
	c := connect(p.t, p.address)
	for n := 0; ctx.Err() == nil; n++ {
		d := lasts(n)
		took, err := once(c, action, d)
		if err != nil {
			p.t.Errorf("%s %d of another client, after %s: %v", action, n, took, err)
			return
		}
		p.mu.Lock()
		p.took[action] = append(p.took[action], took-d)
		p.mu.Unlock()
		<-time.After(20 * time.Millisecond)
	}
}

// once submits one execution without repeating the call, and waits for its end.
func once(c *client.Client, action string, d time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+2**late)
	defer cancel()
	s := api.Submission{Action: action, Queue: plainQueue, Input: fmt.Appendf(nil, `{"for":"%dms"}`, d.Milliseconds())}
	if action == "sleep" {
		s.Queue = ""
	}
	began := time.Now()
	x, err := c.Submit(ctx, s)
	if err != nil {
		return time.Since(began), fmt.Errorf("it is not accepted: %w", err)
	}
	if x, err = c.Wait(ctx, x.ID); err != nil {
		return time.Since(began), fmt.Errorf("its end is not heard of: %w", err)
	}
	if x.Status != api.Completed || x.Attempt != 1 {
		return time.Since(began), fmt.Errorf("%s is %s in attempt %d: %+v", x.ID, x.Status, x.Attempt, x.Error)
	}
	return time.Since(began), nil
}

// report prints how late the work was and fails the test when it was later than the bound. machine is the largest delay of a timer in this
// process: no answer can be expected to be less late than that.
func (p *plainWork) report(machine time.Duration) {
	p.t.Helper()
	for _, action := range []string{"noop", "sleep"} {
		all := p.took[action]
		if len(all) == 0 {
			p.t.Errorf("no %s has ended: the test has tested nothing", action)
			continue
		}
		slices.Sort(all)
		at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(100 * time.Microsecond) }
		p.t.Logf("%-5s %5d times, late by p50 %s, p99 %s, at most %s; timers of the test by at most %s", action, len(all), at(0.5), at(0.99), at(1), machine)
		if worst := at(1); worst > *late+machine {
			p.t.Errorf("a %s of another client was late by %s", action, worst)
		}
	}
}

// stalls sends, once ctx has ended, the largest delay of a timer: the machine's part of any lateness.
func stalls(ctx context.Context) <-chan time.Duration {
	const pause = 10 * time.Millisecond
	worst := make(chan time.Duration, 1)
	go func() {
		most := time.Duration(0)
		for ctx.Err() == nil {
			began := time.Now()
			<-time.After(pause)
			most = max(most, time.Since(began)-pause)
		}
		worst <- most.Round(100 * time.Microsecond)
	}()
	return worst
}
