// Package simulation runs the whole ring in one process: one or several engines on one store, workers, a scripted runtime, and between them
// a network, or a message broker, that loses, doubles, delays and reorders messages. Time is simulated, and one scheduler decides
// everything that could happen in more than one order: the same seed gives the same schedule, to the event.
//
// Engines, workers, the rules and SQLite are the real ones. They run in a testing/synctest bubble. A goroutine that is about to send,
// receive or commit stops at a gate, and the scheduler opens one gate at a time, after all other goroutines have come to rest. The
// judgement is independent of the product: the shadow follows every commit and the ledger every side effect, and both know the invariants
// of docs/invariants.md by number.
package simulation

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// world is one run.
type world struct {
	seed   uint64
	plan   plan
	bug    *bug
	memory *memory
	rng    *rand.Rand // used only by the scheduler; everything else uses noise

	base  store.Store // SQLite
	view  store.Store // as readers see it: with the planted bug's lies
	began time.Time

	shadow *shadow
	ledger *ledger
	load   *load

	replicas []*replica
	hosts    []*host
	outage   time.Time // the database is away until then
	broker   *broker   // nil: workers reach the engines

	all    sync.WaitGroup // every goroutine of the simulation's own
	ctx    context.Context
	stop   context.CancelFunc
	ids    atomic.Uint64
	serial atomic.Uint64

	mu     sync.Mutex
	gates  []*gate
	broken []violation
	trace  []string
	asides []string // lines of goroutines that run side by side
	sum    uint64
	steps  int
	healed bool
}

// violation is a broken promise.
type violation struct {
	invariant int
	step      int
	say       string
}

func (v violation) String() string {
	return fmt.Sprintf("invariant %d (step %d): %s", v.invariant, v.step, v.say)
}

// result is the result of a run.
type result struct {
	seed   uint64
	broken []violation
	trace  []string
	sum    uint64 // of the trace: equal schedules have equal sums

	Seeds, Steps, Commits, Executions, Attempts int
	Faults                                      map[string]int
	Simulated                                   time.Duration
}

// simulate runs one seed within a bubble.
func simulate(seed uint64, b *bug, keepTrace bool) (_ *result, err error) {
	w := &world{seed: seed, bug: b, rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), began: time.Now()}
	w.plan = draw(w.rng)
	if w.noise("plan of refusals") < 0.3 { // not drawn from rng, so that older draws of a seed stay the same
		w.plan.Refused = 0.3
	}
	w.plan.Reacts = w.noise("reacts") < 0.3
	if w.plan.Reacts && w.noise("beats") < 0.5 {
		w.plan.Beat = 1 + int(w.noise("beat")*float64(len(beats)))
	}
	w.plan.Reruns = w.noise("has reruns") < 0.4
	if !w.plan.Solo && w.noise("broker") < 4.0/9 { // of three quarters of the seeds
		w.plan.Remote, w.plan.Broker, w.plan.Forge = false, true, 0.05
	}
	if b != nil && b.tune != nil {
		b.tune(&w.plan)
	}
	if w.plan.Broker {
		w.broker = newBroker(w)
	}
	if w.plan.beats() {
		w.plan.skew = w.plan.beat().change.Add(-beatBegins).Sub(w.began)
	}
	if keepTrace {
		w.trace = []string{}
	}
	w.memory = newMemory()
	w.ctx, w.stop = context.WithCancel(context.Background())
	defer w.stop()
	w.base, err = sqlite.Open(w.ctx, sqlite.InMemory, sqlite.Options{Now: w.now, Uptime: func() time.Duration { return time.Since(w.began) }, Readers: 1})
	if err != nil {
		return nil, err
	}
	w.view = w.base
	if b != nil && b.store != nil {
		w.view = b.store(w, w.base)
	}
	w.shadow, w.ledger = newShadow(w), newLedger(w)
	w.load = newLoad(w)
	w.note("plan %+v", w.plan)
	w.populate()
	w.chaos()
	w.heal()
	if !w.isBroken() {
		w.judge()
	}
	w.shut()
	if err := w.base.Close(); err != nil {
		return nil, err
	}
	return &result{
		seed: seed, broken: w.broken, trace: w.trace, sum: w.sum,
		Seeds: 1, Steps: w.steps, Commits: w.shadow.commits, Executions: w.shadow.created, Attempts: w.shadow.attempts,
		Faults: w.shadow.faults, Simulated: time.Since(w.began),
	}, nil
}

// now is the database's clock. The clocks of engines and workers differ from it.
func (w *world) now() time.Time { return time.Now().Add(w.plan.skew).UTC().Truncate(time.Microsecond) }

// noise returns a number in [0, 1) that depends only on the seed and on its arguments, so that the order of calls does not matter.
func (w *world) noise(what string, parts ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, what)
	for _, p := range parts {
		switch p := p.(type) {
		case flow.ID:
			h.Write(p[:])
		default:
			fmt.Fprint(h, "/", p)
		}
	}
	return rand.New(rand.NewPCG(h.Sum64(), w.seed)).Float64()
}

// id makes the next id. Ids are readable in a trace and ascending.
func (w *world) id() flow.ID {
	n := w.ids.Add(1)
	var id flow.ID
	id[0] = 0x51
	for i := range 8 {
		id[15-i] = byte(n >> (8 * i))
	}
	return id
}

// name returns an id as traces show it.
func name(id flow.ID) string {
	n := 0
	for _, b := range id[8:] {
		n = n<<8 | int(b)
	}
	return fmt.Sprintf("#%d", n)
}

// violate notes a broken promise. The run ends soon after the first one.
func (w *world) violate(invariant int, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := violation{invariant, w.steps, fmt.Sprintf(format, args...)}
	w.broken = append(w.broken, v)
	w.noteLocked("VIOLATION " + v.String())
}

func (w *world) isBroken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.broken) > 0
}

// note adds a line to the trace.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(fmt.Sprintf(format, args...))
}

// aside adds a line from a goroutine that runs beside others. The lines of a step are sorted.
func (w *world) aside(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asides = append(w.asides, fmt.Sprintf(format, args...))
}

func (w *world) noteLocked(line string) {
	h := fnv.New64a()
	h.Write([]byte(line))
	w.sum = (w.sum ^ h.Sum64()) * 0x100000001b3
	if w.trace != nil {
		w.trace = append(w.trace, fmt.Sprintf("%9.3fs %5d %s", time.Since(w.began).Seconds(), w.steps, line))
	}
}

func (w *world) isHealed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healed
}

// gate is where a goroutine waits for the scheduler.
type gate struct {
	key   string // process and action; unique at any time
	kind  gateKind
	of    *replica // whose commit or start it is
	at    *host    // whose message it is
	since time.Time
	late  bool                // may be delayed for long: no call waits for it
	fits  func(*replica) bool // which replicas a message can go to; nil for all
	open  chan verdict
}

type gateKind uint8

const (
	atStart       gateKind = iota // an engine or a client continues
	atCommit                      // a transaction is about to begin
	atRequest                     // a message on its way to an engine
	atAnswer                      // its answer on the way back
	atSend                        // a message on its way to the broker
	atLineMessage                 // a message in the broker, on its way to an engine
	atReply                       // a message in the broker, on its way to a reply queue
)

// verdict is what the scheduler decided.
type verdict struct {
	do fault
	to *replica // for requests: the receiver; nil when no replica is up
}

// fault is what goes wrong at a gate.
type fault uint8

const (
	fine       fault = iota
	gone             // the waiting process is dead
	lose             // the message, or the answer, is lost
	double           // the request arrives a second time, later
	chop             // the report arrives in pieces, in any order, some of them lost
	again            // the answer to a take arrives twice
	conflict         // the transaction must be decided again
	refuse           // the transaction cannot be committed
	unknown          // it is committed and its caller gets no answer
	crashFirst       // the engine dies just before the commit
	crashAfter       // the engine dies just after the commit
	busy             // the broker has no room for the message
)

var faultNames = [...]string{"fine", "gone", "lose", "double", "chop", "again", "conflict", "refuse", "unknown", "crash before commit", "crash after commit", "busy"}

func (f fault) String() string { return faultNames[f] }

// park waits at a gate until the scheduler opens it or ctx ends.
func (w *world) park(ctx context.Context, g *gate) verdict {
	g.since, g.open = time.Now(), make(chan verdict, 1)
	w.mu.Lock()
	if ctx.Err() != nil {
		w.mu.Unlock()
		return verdict{do: gone}
	}
	w.gates = append(w.gates, g)
	w.mu.Unlock()
	select {
	case v := <-g.open:
		return v
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		if i := slices.Index(w.gates, g); i >= 0 {
			w.gates = slices.Delete(w.gates, i, i+1)
		}
		return verdict{do: gone}
	}
}

// waiting returns the gates that may be opened, in an order that does not depend on their arrival.
func (w *world) waiting() []*gate {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.asides)
	for _, line := range w.asides {
		w.noteLocked(line)
	}
	w.asides = w.asides[:0]
	var gs []*gate
	for _, g := range w.gates {
		if (g.at == nil || !g.at.isFrozen()) && (g.kind != atLineMessage || len(w.reachable(g)) > 0) {
			gs = append(gs, g)
		}
	}
	slices.SortFunc(gs, func(a, b *gate) int { return cmp.Or(strings.Compare(a.key, b.key), a.since.Compare(b.since)) })
	return gs
}

// release opens a gate.
func (w *world) release(g *gate, v verdict) {
	w.mu.Lock()
	w.gates = slices.Delete(w.gates, slices.Index(w.gates, g), slices.Index(w.gates, g)+1)
	w.steps++
	line := g.key
	if v.do != fine {
		line += ": " + v.do.String()
	}
	if v.to != nil {
		line += " → " + v.to.name()
	}
	w.noteLocked(line)
	w.mu.Unlock()
	if v.do != fine {
		w.shadow.faults[v.do.String()]++
	}
	g.open <- v
	// No two steps happen in the same instant: pauses that begin at different moments end at different moments.
	synctest.Wait()
	time.Sleep(tick)
}

// tick is the time that one step takes.
const tick = 3 * time.Microsecond

// spawn runs a goroutine. The end of the simulation waits for it.
func (w *world) spawn(f func()) { w.all.Go(f) }

// both returns a context that ends when either of the two ends.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(a)
	stop := context.AfterFunc(b, func() { cancel(context.Cause(b)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// shut ends everything and waits for every goroutine. The synctest bubble finds one that does not end.
func (w *world) shut() {
	for _, h := range w.hosts {
		h.kill()
	}
	for _, r := range w.replicas {
		r.crash()
	}
	w.stop()
	w.all.Wait()
}
