// Package chaos runs Pawl as in production, several servers and workers on one PostgreSQL. It takes parts down again and again, and checks
// afterwards that nothing was lost, done out of order or done twice.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
	"github.com/pawl-run/pawl/internal/programtest"
)

var (
	cycles = flag.Int("chaos.cycles", 8, "how many processes are taken down")
	seed   = flag.Uint64("chaos.seed", 0, "the seed of the schedule; 0: one of its own")
	long   = flag.Bool("chaos.long", false, "also stop processes for ten leases")
	keep   = flag.String("chaos.keep", "", "a directory to keep the parts' logs in")
	broker = flag.String("chaos.broker", "", "redis or rabbitmq: the workers elsewhere are behind such a broker, which is taken down as well")
)

const lease = 3 * time.Second

// cluster is everything that the test can take down.
type cluster struct {
	t         *testing.T
	db        *database
	dsn       string
	servers   []*part
	workers   []*part // remote workers; the servers have workers of their own
	toStore   []*proxy
	balance   *proxy       // the load balancer, which clients connect to
	toWork    []*proxy     // one for each remote worker's connection
	transport outageBroker // the broker; nil when the remote workers connect to the servers
	addrs     []string
	lasting   lasting
	load      *load
	drains    int // processes that shut down in good order
	silent    int // times that a server's connections fell silent
}

func start(t *testing.T, broker string, retention time.Duration) *cluster {
	c := &cluster{t: t, db: own(t)}
	c.dsn = c.db.named(t)
	switch broker {
	case "":
	case "redis":
		c.transport = redistest.Start(t, "--appendonly", "yes")
	case "rabbitmq":
		c.transport = rabbitmqtest.Start(t)
	default:
		t.Fatalf("-chaos.broker %q: there are redis and rabbitmq", broker)
	}
	dir := *keep
	if dir == "" {
		dir = t.TempDir()
	}
	for i := range 3 {
		p := newProxy(t, hostOf(c.db.dsn))
		c.toStore = append(c.toStore, p)
		addr := "127.0.0.1:" + programtest.FreePort(t)
		c.addrs = append(c.addrs, addr)
		args := []string{"server", "--listen", addr, "--state-dir", filepath.Join(dir, fmt.Sprintf("state-%d", i)),
			"--store", through(c.dsn, p.address()), "--slots", "3", "--runtime", "process", "--lease", lease.String(), "--grace", grace.String(),
			"--retention", retention.String()}
		if i == 2 {
			args = append(args, "--no-worker")
		}
		if c.transport != nil {
			args = append(args, "--broker", c.transport.URL())
		}
		c.servers = append(c.servers, runSet(t, dir, fmt.Sprintf("server-%d", i), slices.Concat(hasty, hookSettings), args...))
	}
	c.balance = newProxy(t, c.addrs...)
	for i := range 2 {
		far, way := c.addrs, []string{"--server", "http://"}
		if c.transport != nil {
			far, way = []string{c.transport.Addr()}, []string{"--broker", strings.TrimSuffix(c.transport.URL(), c.transport.Addr())}
		}
		p := newProxy(t, far...)
		c.toWork = append(c.toWork, p)
		c.workers = append(c.workers, run(t, dir, fmt.Sprintf("worker-%d", i), "worker", way[0], way[1]+p.address(),
			"--name", fmt.Sprintf("worker-%d", i), "--slots", "3", "--runtime", "process", "--state-dir", filepath.Join(dir, fmt.Sprintf("work-%d", i)), "--grace", grace.String()))
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

// TestChaos takes parts down while work comes in. The faults follow from the seed; the moments at which the parts reach them do not.
func TestChaos(t *testing.T) {
	chaos(t, *broker, *cycles)
}

// TestChaosBehindBrokers does the same with each broker between the servers and the remote workers.
func TestChaosBehindBrokers(t *testing.T) {
	if *long || *broker != "" {
		t.Skip("-chaos.long or -chaos.broker is set: TestChaos runs with the broker that is named, and no others")
	}
	for _, broker := range []string{"redis", "rabbitmq"} {
		t.Run(broker, func(t *testing.T) { chaos(t, broker, *cycles) })
	}
}

func chaos(t *testing.T, broker string, cycles int) {
	seed := *seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d cycles: go test ./e2e/chaos -run %s -chaos.seed %d -chaos.cycles %d", seed, cycles, t.Name(), seed, cycles)
	random := rand.New(rand.NewPCG(seed, 0))
	retention := between(random, 3*time.Second, 6*time.Second)
	if *long {
		retention = between(random, 5*time.Second, time.Minute)
	}
	c := start(t, broker, retention)
	l := &load{t: t, ledger: filepath.Join(t.TempDir(), "ledger"), any: connect(t, c.balance.address()), servers: c.addrs, retention: retention,
		http: &http.Client{Transport: &http.Transport{IdleConnTimeout: time.Second}, Timeout: 20 * time.Second}}
	for _, a := range c.addrs {
		l.each = append(l.each, connect(t, a))
	}
	c.load = l
	l.define()
	beats, hooks := rates()
	l.beat(beats, c.addrs)
	m := watch(t, c.dsn, l)
	stop, loaded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(loaded)
		var beside sync.WaitGroup
		beside.Go(func() { l.hook(stop, hooks) })
		l.run(stop, 250*time.Millisecond)
		beside.Wait()
		l.rest()
	}()
	var bag []fault
	for _, f := range append(faults(), c.brokerFaults()...) {
		for range f.weight {
			bag = append(bag, f)
		}
	}
	counts := map[string]int{}
	for n, kills := 1, 0; kills < cycles; n++ {
		<-time.After(time.Duration(100+random.IntN(400)) * time.Millisecond)
		f := bag[random.IntN(len(bag))]
		say := f.do(c, random)
		counts[f.name]++
		if f.kills {
			kills++
		}
		t.Logf("%3d %s %s", n, f.name, say)
	}
	c.lasting.all.Wait()
	if cycles >= 200 {
		c.rest()
	}
	close(stop)
	<-loaded
	c.quiesce(l)
	m.archive.await(t)
	watched := m.end()
	lives := 0
	for _, p := range append(c.workers, c.servers...) {
		p.end(syscall.SIGTERM)
		lives += p.lives - 1
	}
	t.Logf("seed %d: %d kill cycles among %v; %d processes were replaced, %d of them in good order; died at their moment: %v",
		seed, cycles, counts, lives, c.drains, c.moments())
	if n := c.db.logged("deadlock detected"); n > 0 {
		t.Errorf("PostgreSQL found %d deadlocks", n)
	}
	check(t, c.dsn, l, limits, watched)
	if t.Logf("%d signals acknowledged", len(l.reactions.signals)); len(l.reactions.signals) == 0 {
		t.Error("no signal was emitted: the test has tested nothing of them")
	}
}

// limits are the limits of the keys that the load uses, and of the open items of each foreach.
var limits = map[string]int{"first": 1, "pair": 2, "each": 3, "last": 2}

// moments counts how often a process died at each moment that a fault gave it.
func (c *cluster) moments() map[string]int {
	died := map[string]int{}
	for _, p := range append(c.servers, c.workers...) {
		b, err := os.ReadFile(p.log.Name())
		if err != nil {
			c.t.Errorf("read %s's log: %v", p.name, err)
		}
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, failpoint.Said); ok {
				name, _, _ = strings.Cut(name, ":")
				died[name]++
			}
		}
	}
	return died
}

// rest lets processes die at the moments that the random faults have left out: a process that waits for its thirtieth answer is often
// killed before.
func (c *cluster) rest() {
	servers, workers := failpoint.All()
	if c.transport != nil { // no worker gets an answer over HTTP
		atServers, atWorkers := failpoint.OfBrokers()
		servers = append(slices.DeleteFunc(servers, func(m string) bool { return m == failpoint.AfterAnswer }), atServers...)
		workers = append(workers, atWorkers...)
	}
	for _, kind := range []struct {
		parts   []*part
		moments []string
	}{{c.servers, servers}, {c.workers, workers}} {
		for _, m := range kind.moments {
			if c.moments()[m] > 0 {
				continue
			}
			for _, p := range kind.parts {
				p.kill(0, failpoint.Variable+"="+m+":1")
			}
			for late := time.After(time.Minute); c.moments()[m] == 0; {
				select {
				case <-late:
					c.t.Errorf("no process died at %s", m)
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
			c.t.Logf("    and at %s", m)
		}
	}
}

// quiesce waits until every accepted execution has ended, however many there are. It fails when the number of open ones has not fallen for
// three minutes.
func (c *cluster) quiesce(l *load) {
	c.t.Helper()
	const said = 20
	began := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	least, since, left := math.MaxInt, began, ""
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		st, err := l.any.Stats(ctx)
		cancel()
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
			if open < least {
				least, since = open, time.Now()
			}
		}
		if time.Since(since) < patience {
			<-tick.C
			continue
		}
		c.t.Errorf("invariant 34: %s after the last fault nothing has ended for %s, and there is %s", time.Since(began).Round(time.Second), patience, left)
		n := 0
		for x, err := range l.any.All(context.Background(), client.Filter{}) {
			if err == nil && !x.Status.Terminal() {
				w, _ := l.any.Why(context.Background(), x.ID)
				c.t.Logf("%s %s: %+v", x.ID, x.Action, w)
				if n++; n == said {
					return
				}
			}
		}
		return
	}
}
