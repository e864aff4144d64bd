// Package chaos runs Pawl as it runs in production, several servers and workers on one PostgreSQL, takes its parts down
// again and again, and checks afterwards that nothing was lost, done out of turn or done twice.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/failpoint"
)

var (
	cycles = flag.Int("chaos.cycles", 12, "how often something is taken down")
	seed   = flag.Uint64("chaos.seed", 0, "the seed of the schedule; 0: one of its own")
	long   = flag.Bool("chaos.long", false, "also stop workers for ten leases")
	keep   = flag.String("chaos.keep", "", "a directory to keep the parts' logs in")
)

const lease = 3 * time.Second

// cluster is everything that can be taken down.
type cluster struct {
	t       *testing.T
	db      *database
	dsn     string
	servers []*part
	workers []*part // elsewhere; the servers have some of their own
	toStore []*proxy
	balance *proxy   // what clients talk to
	toWork  []*proxy // what each worker elsewhere talks to
	addrs   []string
}

func start(t *testing.T) *cluster {
	c := &cluster{t: t, db: own(t)}
	c.dsn = c.db.named(t)
	dir := *keep
	if dir == "" {
		dir = t.TempDir()
	}
	for i := range 3 {
		p := newProxy(t, hostOf(c.db.dsn))
		c.toStore = append(c.toStore, p)
		addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
		c.addrs = append(c.addrs, addr)
		args := []string{"server", "--listen", addr, "--state-dir", filepath.Join(dir, fmt.Sprintf("state-%d", i)),
			"--store", through(c.dsn, p.address()), "--slots", "3", "--runtime", "process", "--lease", lease.String(), "--grace", "2s"}
		if i == 2 {
			args = append(args, "--no-worker")
		}
		c.servers = append(c.servers, run(t, dir, fmt.Sprintf("server-%d", i), args...))
	}
	c.balance = newProxy(t, c.addrs...)
	for i := range 2 {
		p := newProxy(t, c.addrs...)
		c.toWork = append(c.toWork, p)
		c.workers = append(c.workers, run(t, dir, fmt.Sprintf("worker-%d", i), "worker", "--server", "http://"+p.address(),
			"--name", fmt.Sprintf("worker-%d", i), "--slots", "3", "--runtime", "process", "--state-dir", filepath.Join(dir, fmt.Sprintf("work-%d", i)), "--grace", "2s"))
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, p := range append(c.servers, c.workers...) {
			b, _ := os.ReadFile(p.log.Name())
			t.Logf("the end of %s's log:\n%s", p.name, tail(string(b), 40))
		}
	})
	return c
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// fault takes something down and brings it back, or leaves that to whoever keeps the part running.
type fault struct {
	name   string
	weight int
	do     func(c *cluster, r *rand.Rand) (say string)
}

func faults() []fault {
	serverMoments, workerMoments := failpoint.All()
	moment := func(r *rand.Rand, all []string) string {
		return fmt.Sprintf("PAWL_FAILPOINT=%s:%d", all[r.IntN(len(all))], 1+r.IntN(30))
	}
	between := func(r *rand.Rand, least, most time.Duration) time.Duration {
		return least + time.Duration(r.Int64N(int64(most-least)))
	}
	pick := func(r *rand.Rand, all []*part) *part { return all[r.IntN(len(all))] }
	all := []fault{
		{"kill a server", 5, func(c *cluster, r *rand.Rand) string {
			p := pick(r, c.servers)
			p.kill(between(r, 0, time.Second))
			return p.name
		}},
		{"kill a worker", 4, func(c *cluster, r *rand.Rand) string {
			p := pick(r, c.workers)
			p.kill(between(r, 0, time.Second))
			return p.name
		}},
		{"crash a server at a moment", 4, func(c *cluster, r *rand.Rand) string {
			p, m := pick(r, c.servers), moment(r, serverMoments)
			p.kill(0, m)
			return p.name + " " + m
		}},
		{"crash a worker at a moment", 3, func(c *cluster, r *rand.Rand) string {
			p, m := pick(r, c.workers), moment(r, workerMoments)
			p.kill(0, m)
			return p.name + " " + m
		}},
		{"drain a server", 2, func(c *cluster, r *rand.Rand) string {
			p := pick(r, c.servers)
			p.signal(syscall.SIGTERM)
			return p.name
		}},
		{"stop a worker for half a lease", 2, func(c *cluster, r *rand.Rand) string { return freeze(pick(r, c.workers), lease/2) }},
		{"stop a worker for one and a half leases", 2, func(c *cluster, r *rand.Rand) string { return freeze(pick(r, c.workers), lease*3/2) }},
		{"stop a server for half a lease", 1, func(c *cluster, r *rand.Rand) string { return freeze(pick(r, c.servers), lease/2) }},
		{"stop a server for one and a half leases", 1, func(c *cluster, r *rand.Rand) string { return freeze(pick(r, c.servers), lease*3/2) }},
		{"restart PostgreSQL", 2, func(c *cluster, _ *rand.Rand) string {
			if !c.db.ours() {
				return "is not possible here: it runs in a container"
			}
			c.db.restart(c.t)
			return ""
		}},
		{"cut a server from PostgreSQL", 2, func(c *cluster, r *rand.Rand) string {
			return cut(c.toStore[r.IntN(len(c.toStore))], between(r, 100*time.Millisecond, lease))
		}},
		{"delay a server's PostgreSQL", 2, func(c *cluster, r *rand.Rand) string {
			return slow(c.toStore[r.IntN(len(c.toStore))], between(r, 5*time.Millisecond, 60*time.Millisecond), between(r, 200*time.Millisecond, lease/2))
		}},
		{"cut a worker from the servers", 2, func(c *cluster, r *rand.Rand) string {
			return cut(c.toWork[r.IntN(len(c.toWork))], between(r, 100*time.Millisecond, 3*lease/2))
		}},
		{"delay a worker's calls", 1, func(c *cluster, r *rand.Rand) string {
			return slow(c.toWork[r.IntN(len(c.toWork))], between(r, 5*time.Millisecond, 100*time.Millisecond), between(r, 200*time.Millisecond, lease/2))
		}},
		{"cut the clients from the servers", 1, func(c *cluster, r *rand.Rand) string {
			return cut(c.balance, between(r, 50*time.Millisecond, time.Second))
		}},
		{"leave no connections", 1, func(c *cluster, r *rand.Rand) string {
			leave, n := c.db.crowd()
			defer leave()
			c.servers[r.IntN(len(c.servers))].kill(0) // it comes back into the crowd
			<-time.After(between(r, 200*time.Millisecond, time.Second))
			return fmt.Sprintf("%d taken", n)
		}},
	}
	if *long {
		all = append(all, fault{"stop a worker for ten leases", 1, func(c *cluster, r *rand.Rand) string { return freeze(pick(r, c.workers), 10*lease) }})
	}
	return all
}

// freeze stops a process for a while, as a host that swaps or a laptop that sleeps would.
func freeze(p *part, d time.Duration) string {
	p.signal(syscall.SIGSTOP)
	<-time.After(d)
	p.signal(syscall.SIGCONT)
	return fmt.Sprintf("%s for %s", p.name, d)
}

func cut(p *proxy, d time.Duration) string {
	p.setCut(true)
	<-time.After(d)
	p.setCut(false)
	return "for " + d.Round(time.Millisecond).String()
}

func slow(p *proxy, by, d time.Duration) string {
	p.setDelay(by)
	<-time.After(d)
	p.setDelay(0)
	return fmt.Sprintf("by %s for %s", by.Round(time.Millisecond), d.Round(time.Millisecond))
}

// TestChaos takes parts down while work comes in. What it does follows from the seed; when the parts get to what they do
// does not.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d cycles: go test ./e2e/chaos -run TestChaos -chaos.seed %d -chaos.cycles %d", *seed, *cycles, *seed, *cycles)
	random := rand.New(rand.NewPCG(*seed, 0))
	c := start(t)
	l := &load{t: t, ledger: filepath.Join(t.TempDir(), "ledger"), any: connect(t, c.balance.address())}
	for _, a := range c.addrs {
		l.each = append(l.each, connect(t, a))
	}
	l.define()
	stop, loaded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(loaded)
		l.run(stop, 250*time.Millisecond)
	}()
	var bag []fault
	for _, f := range faults() {
		for range f.weight {
			bag = append(bag, f)
		}
	}
	counts := map[string]int{}
	for n := range *cycles {
		<-time.After(time.Duration(100+random.IntN(500)) * time.Millisecond)
		f := bag[random.IntN(len(bag))]
		say := f.do(c, random)
		counts[f.name]++
		t.Logf("%3d %s %s", n+1, f.name, say)
	}
	close(stop)
	<-loaded
	c.quiesce(l)
	lives := 0
	for _, p := range append(c.workers, c.servers...) {
		p.end(syscall.SIGTERM)
		lives += p.lives - 1
	}
	t.Logf("seed %d: %d cycles %v; %d processes were replaced; deadlocks in the server's log: %d", *seed, *cycles, counts, lives, c.db.logged("deadlock detected"))
	check(t, c.dsn, l, map[string]int{"first": 1, "pair": 2, "each": 3})
}

// quiesce waits until everything that was accepted has ended.
func (c *cluster) quiesce(l *load) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var left string
	for {
		st, err := l.any.Stats(ctx)
		if err == nil {
			open := 0
			for s, n := range st.Executions {
				if !s.Terminal() {
					open += n
				}
			}
			if open == 0 {
				c.t.Logf("everything had ended %s after the last fault", time.Since(began).Round(time.Millisecond))
				return
			}
			left = fmt.Sprint(st.Executions)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Errorf("invariant 34: 3 minutes after the last fault there is %s", left)
			for x, err := range l.any.All(context.Background(), client.Filter{}) {
				if err == nil && !x.Status.Terminal() {
					w, _ := l.any.Why(context.Background(), x.ID)
					c.t.Logf("%s %s: %+v", x.ID, x.Action, w)
				}
			}
			return
		}
	}
}
