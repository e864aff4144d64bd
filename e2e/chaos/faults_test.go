package chaos

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/failpoint"
)

// fault is something that goes wrong. It draws its random values before it returns; its effect may last longer, beside the faults that
// follow.
type fault struct {
	name   string
	weight int
	kills  bool // a process, or the database
	do     func(c *cluster, r *rand.Rand) (say string)
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// crash lets the next process of a part end at a moment.
func crash(r *rand.Rand, p *part, moments []string) string {
	m := fmt.Sprintf("%s:%d", pick(r, moments), 1+r.IntN(30))
	p.kill(0, failpoint.Variable+"="+m)
	return p.name + " at " + m
}

func faults() []fault {
	serverMoments, workerMoments := failpoint.All()
	all := []fault{
		{"kill a server", 5, true, func(c *cluster, r *rand.Rand) string {
			p := pick(r, c.servers)
			p.kill(between(r, 0, time.Second))
			return p.name
		}},
		{"kill a worker", 4, true, func(c *cluster, r *rand.Rand) string {
			p := pick(r, c.workers)
			p.kill(between(r, 0, time.Second))
			return p.name
		}},
		{"crash a server at a moment", 4, true, func(c *cluster, r *rand.Rand) string { return crash(r, pick(r, c.servers), serverMoments) }},
		{"crash a worker at a moment", 3, true, func(c *cluster, r *rand.Rand) string { return crash(r, pick(r, c.workers), workerMoments) }},
		{"drain a server", 2, true, func(c *cluster, r *rand.Rand) string { return c.drain(pick(r, c.servers)) }},
		{"drain a worker", 3, true, func(c *cluster, r *rand.Rand) string { return c.drain(pick(r, c.workers)) }},
		{"restart PostgreSQL", 2, true, func(c *cluster, _ *rand.Rand) string {
			if !c.db.ours() {
				return "is not possible here: it runs in a container"
			}
			c.db.restart(c.t)
			return ""
		}},
		{"stop a worker for half a lease", 2, false, func(c *cluster, r *rand.Rand) string { return c.freeze(pick(r, c.workers), lease/2) }},
		{"stop a worker for one and a half leases", 2, false, func(c *cluster, r *rand.Rand) string { return c.freeze(pick(r, c.workers), lease*3/2) }},
		{"stop a server for half a lease", 1, false, func(c *cluster, r *rand.Rand) string { return c.freeze(pick(r, c.servers), lease/2) }},
		{"stop a server for one and a half leases", 1, false, func(c *cluster, r *rand.Rand) string { return c.freeze(pick(r, c.servers), lease*3/2) }},
		{"cut a server from PostgreSQL", 2, false, func(c *cluster, r *rand.Rand) string {
			return c.cut(pick(r, c.toStore), between(r, 100*time.Millisecond, lease))
		}},
		{"delay a server's PostgreSQL", 2, false, func(c *cluster, r *rand.Rand) string {
			return c.slow(pick(r, c.toStore), between(r, 5*time.Millisecond, 60*time.Millisecond), between(r, 200*time.Millisecond, lease/2))
		}},
		{"silence a server's PostgreSQL", 1, false, func(c *cluster, r *rand.Rand) string { return c.silence(r.IntN(len(c.servers))) }},
		{"cut a worker from the servers", 2, false, func(c *cluster, r *rand.Rand) string {
			return c.cut(pick(r, c.toWork), between(r, 100*time.Millisecond, 3*lease/2))
		}},
		{"delay a worker's calls", 1, false, func(c *cluster, r *rand.Rand) string {
			return c.slow(pick(r, c.toWork), between(r, 5*time.Millisecond, 100*time.Millisecond), between(r, 200*time.Millisecond, lease/2))
		}},
		{"cut the clients from the servers", 1, false, func(c *cluster, r *rand.Rand) string {
			return c.cut(c.balance, between(r, 50*time.Millisecond, time.Second))
		}},
		{"delay the clients' calls", 1, false, func(c *cluster, r *rand.Rand) string {
			return c.slow(c.balance, between(r, 5*time.Millisecond, 100*time.Millisecond), between(r, 200*time.Millisecond, lease/2))
		}},
		{"leave no connections", 1, false, func(c *cluster, r *rand.Rand) string {
			d := between(r, 200*time.Millisecond, lease/2)
			leave, n := c.db.crowd(c.dsn)
			defer leave()
			<-time.After(d)
			return fmt.Sprintf("%d taken for %s", n, d.Round(time.Millisecond))
		}},
	}
	if *long {
		all = append(all,
			fault{"stop a worker for ten leases", 1, false, func(c *cluster, r *rand.Rand) string { return c.freeze(pick(r, c.workers), 10*lease) }},
			fault{"stop a server for ten leases", 1, false, func(c *cluster, r *rand.Rand) string { return c.freeze(pick(r, c.servers), 10*lease) }})
	}
	return all
}

// lasting holds the faults under way, at most one for each target.
type lasting struct {
	mu  sync.Mutex
	on  map[any]bool
	all sync.WaitGroup
}

// during does something to a target for a while, beside other faults.
func (l *lasting) during(target any, d time.Duration, begin, end func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.on[target] {
		return false
	}
	if l.on == nil {
		l.on = map[any]bool{}
	}
	l.on[target] = true
	begin()
	l.all.Go(func() {
		<-time.After(d)
		l.mu.Lock()
		defer l.mu.Unlock()
		end()
		delete(l.on, target)
	})
	return true
}

const already = "is under way already"

// freeze stops a process for a while, as on a host that swaps or a laptop that sleeps. The process may be killed meanwhile.
func (c *cluster) freeze(p *part, d time.Duration) string {
	if !c.lasting.during(p, d, func() { p.signal(syscall.SIGSTOP) }, func() { p.signal(syscall.SIGCONT) }) {
		return already
	}
	return fmt.Sprintf("%s for %s", p.name, d)
}

func (c *cluster) cut(p *proxy, d time.Duration) string {
	if !c.lasting.during(p, d, func() { p.setCut(true) }, func() { p.setCut(false) }) {
		return already
	}
	return "for " + d.Round(time.Millisecond).String()
}

func (c *cluster) slow(p *proxy, by, d time.Duration) string {
	if !c.lasting.during(p, d, func() { p.setDelay(by) }, func() { p.setDelay(0) }) {
		return already
	}
	return fmt.Sprintf("by %s for %s", by.Round(time.Millisecond), d.Round(time.Millisecond))
}

// silence makes a server's database connections fall silent, as a fail-over does, and checks that the server works again in time. No other
// fault may hit the server meanwhile.
func (c *cluster) silence(server int) string {
	c.lasting.all.Wait()
	works := func(when string) (time.Duration, bool) {
		began := time.Now()
		key := fmt.Sprintf("silence-%d-%s", c.silent, when)
		a := c.load.submit(c.load.each[server], key, "leaf", c.load.input("leaf", "0.01"), api.Completed)
		return time.Since(began), a != nil && c.load.read(c.load.each[server], a)
	}
	c.silent++
	if _, ok := works("before"); !ok {
		return "is not possible: the server is down"
	}
	c.toStore[server].silence()
	took, ok := works("after")
	if ok && took > worksAgain {
		c.t.Errorf("%s worked again %s after its connections to the database fell silent, want %s", c.servers[server].name, took, worksAgain)
	}
	return fmt.Sprintf("%s for %s", c.servers[server].name, took.Round(time.Millisecond))
}

const (
	grace = 2 * time.Second
	// drained bounds how long a process takes to shut down: its grace, the time that a worker gives to the reports of stopped work (10 s) and
	// its last call (5 s) when it gets no answer, and some more for a busy machine.
	drained = grace + 30*time.Second
)

// drain shuts a process down while it works: work that does not end within the grace is handed back.
func (c *cluster) drain(p *part) string {
	now := p.process()
	began := time.Now()
	p.signal(syscall.SIGCONT) // a stopped process hears nothing
	if !p.signal(syscall.SIGTERM) {
		return p.name + " is down"
	}
	select {
	case <-now.over:
	case <-time.After(drained):
		c.t.Errorf("%s did not end within %s of SIGTERM", p.name, drained)
		p.kill(0)
		return p.name
	}
	if now.err != nil {
		return fmt.Sprintf("%s: %v", p.name, now.err) // it has come to its moment, or had not begun to listen
	}
	c.drains++
	return fmt.Sprintf("%s in %s", p.name, time.Since(began).Round(time.Millisecond))
}
