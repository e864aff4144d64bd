package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// allowance is what a claimer may get in a transaction. It is made when the claimer's session is locked.
type allowance struct {
	refused error // why it gets no work; nil: it may
	paused  bool  // its worker is paused: it gets no work
	room    int   // how many more it takes, in slots
	instant int   // how many more it takes of kinds that occupy no slot
	// tookQueued is set once it has claimed from its queues, as far as it has room.
	tookQueued bool
}

// use takes the room of one execution. Executions of instant kinds take slots once there are too many of them.
func (a *allowance) use(k *claimer, kind flow.Kind) {
	if a.instant > 0 && k.state.instant(kind) {
		a.instant--
	} else {
		a.room--
	}
}

// dispatch is what a transaction does for claimers.
//
// Old work goes first: claimWaiting lets claimers take from their queues before the requests are carried out. Then handOver gives new
// executions to claimers before they are written, and claimQueued lets claimers take those for which no claimer had room at that moment.
type dispatch struct {
	claimers *roster
	allowed  map[*claimer]*allowance
	claimed  map[*claimer][]*flow.Execution
	queued   map[string]int  // executions that this transaction put into each queue and has not claimed for a worker
	empty    map[string]bool // queues that were found empty
	took     time.Duration   // to look into queues
	bytes    int             // payload of claimed executions
	pauses   *pauseSet       // the pauses under which the sessions were locked, once one has been
	moved    int             // executions that were moved to routing keys of paused actions
	// pausesKnown is set once the store has named the latest pauses: pauses are those.
	pausesKnown bool
	resumes     time.Time // when the pause ends that has kept something from being claimed; zero: none does
}

func newDispatch(claimers *roster, pauses *pauseSet) dispatch {
	return dispatch{
		claimers: claimers, pauses: pauses,
		allowed: map[*claimer]*allowance{}, claimed: map[*claimer][]*flow.Execution{},
		queued: map[string]int{}, empty: map[string]bool{},
	}
}

// full reports whether the claimed payloads have reached the bytes of one transaction.
func (d *dispatch) full() bool { return d.bytes >= store.TakeBytes }

// allEmpty reports whether each of the queues was found empty.
func (d *dispatch) allEmpty(queues []string) bool {
	for _, q := range queues {
		if !d.empty[q] {
			return false
		}
	}
	return true
}

// anyQueued reports whether a queued execution is not handed over.
func (d *dispatch) anyQueued() bool {
	for _, n := range d.queued {
		if n > 0 {
			return true
		}
	}
	return false
}

// allow looks up a claimer's session.
func (t *transaction) allow(ctx context.Context, k *claimer) (*allowance, error) {
	if a := t.dispatch.allowed[k]; a != nil {
		return a, nil
	}
	session, left, err := t.tx.LockSession(ctx, k.session)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("look up the session: %w", err)
	}
	// A worker renews its session every third of a lease, and stops all its attempts after two thirds without a renewal. After an outage of
	// the store its next claim may come before its next renewal. If it got work after half a lease, it would probably stop it at once.
	runs := left > t.e.opts.Lease/2
	a := &allowance{}
	if err == nil {
		if err := t.learnPauses(ctx, session.Pauses); err != nil {
			return nil, err
		}
	}
	switch {
	case runs && t.notePause(t.dispatch.pauses.on(store.PausedWorker, session.Name, t.now)):
		a.paused = true
	case runs:
		a.room, a.instant = k.n, k.state.mostInstant(k.n)
	case err != nil || session.ExpiresAt.IsZero():
		a.refused = handoff.ErrSessionLost // its recovery has begun, and would miss a new claim
	default:
		a.refused = errors.New("the session was not renewed for half a lease: renew it") // the renewal finds out whether that is final
	}
	t.dispatch.allowed[k] = a
	return a, nil
}

// handOver gives new executions to claimers that have emptied their queues, before the executions are written: otherwise an execution would
// be written into a queue and a second time for its worker.
func (t *transaction) handOver(ctx context.Context) error {
	var fresh []*flow.Draft
	for _, d := range t.changes.drafts {
		if d.New && d.Place == flow.Ready {
			fresh = append(fresh, d)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *flow.Draft) int { return b.Priority - a.Priority })
	unserved := map[string]bool{} // queues without a claimer that has room
	for _, d := range fresh {
		if unserved[d.Queue] || t.queuePaused(d.Queue) || t.pausesAction(d.Action) {
			continue
		}
		k, err := t.receiver(ctx, d.Queue)
		if err != nil {
			return err
		}
		if k == nil || t.queuePaused(d.Queue) { // as known since the receiver's session was locked
			unserved[d.Queue] = true
			continue
		}
		if t.pausesAction(d.Action) {
			continue // the next look into its queue moves it
		}
		if err := d.Claim(k.session, k.name, t.now); err != nil {
			return err
		}
		t.dispatch.allowed[k].use(k, d.Kind)
		t.dispatch.queued[d.Queue]--
		t.dispatch.claimed[k] = append(t.dispatch.claimed[k], d.Execution)
	}
	return nil
}

// receiver is a claimer of a queue that has taken the older executions and has room; nil if there is none.
func (t *transaction) receiver(ctx context.Context, queue string) (*claimer, error) {
	for i := 0; i < len(t.dispatch.claimers.all) || t.pull(func(q string) bool { return q == queue }); i++ {
		k := t.dispatch.claimers.all[i]
		if !slices.Contains(k.queues, queue) {
			continue
		}
		if a := t.dispatch.allowed[k]; a == nil || !a.tookQueued {
			if _, err := t.take(ctx, k); err != nil {
				return nil, err
			}
		}
		if a := t.dispatch.allowed[k]; a != nil && a.room > 0 {
			return k, nil
		}
	}
	return nil, nil
}

// pull moves one more waiting claimer into this transaction, and reports whether there was one. wanted is called under
// the engine's mutex.
func (t *transaction) pull(wanted func(queue string) bool) bool {
	return t.join(func(c *claimers) *claimer { return c.pull(0, wanted) })
}

// join is pull with a function that chooses the claimer.
func (t *transaction) join(choose func(*claimers) *claimer) bool {
	all := &t.dispatch.claimers.all
	if len(*all) >= claimersLimit {
		return false
	}
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	k := choose(&t.e.claimers)
	if k != nil {
		*all = append(*all, k)
	}
	return k != nil
}

// claimWaiting lets claimers whose queues may hold work take it first: the executions that this transaction creates come after it.
func (t *transaction) claimWaiting(ctx context.Context) error {
	if len(t.dispatch.claimers.all) == 0 {
		return nil
	}
	for _, k := range t.dispatch.claimers.all {
		if t.dispatch.allEmpty(k.queues) {
			continue
		}
		if _, err := t.take(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// claimQueued lets claimers take executions that this transaction has queued and could not hand over.
func (t *transaction) claimQueued(ctx context.Context) error {
	waits := func(q string) bool { return t.dispatch.queued[q] > 0 && !t.queuePaused(q) }
	for i := 0; i < len(t.dispatch.claimers.all) || t.dispatch.anyQueued() && t.pull(waits); i++ {
		k := t.dispatch.claimers.all[i]
		if !slices.ContainsFunc(k.queues, waits) {
			continue
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		all, err := t.take(ctx, k)
		if err != nil {
			return err
		}
		if all {
			for _, q := range k.queues {
				t.dispatch.queued[q] = 0
			}
		}
	}
	return nil
}

// claimLate lets claimers that came during the transaction take from queues that may hold work. Otherwise each of them would cost its own
// commit: while a worker with 4 slots runs no-ops, its next call of Take comes while its ends are being written. For 4,000 no-ops on SQLite
// this saves a fifth of the commits.
func (t *transaction) claimLate(ctx context.Context) error {
	for t.join(func(c *claimers) *claimer { return c.pullLate(t.dispatch.empty) }) {
		if _, err := t.take(ctx, t.dispatch.claimers.all[len(t.dispatch.claimers.all)-1]); err != nil {
			return err
		}
	}
	return nil
}

// take lets one claimer take from its queues, and reports whether it emptied them.
func (t *transaction) take(ctx context.Context, k *claimer) (all bool, err error) {
	if k.gone.Load() {
		return false, nil
	}
	began := time.Now()
	defer func() { t.dispatch.took += time.Since(began) }()
	a, err := t.allow(ctx, k)
	if err != nil || a.room == 0 {
		return false, err
	}
	a.tookQueued = true
	for limit := t.firstLook(k, a); !t.dispatch.full(); {
		l, err := t.takeFrom(ctx, k, a, limit)
		if err != nil {
			return false, err
		}
		all = !l.more && !t.dispatch.full()
		if all || a.room == 0 {
			break
		}
		if limit = t.nextLook(k, a, limit, l); limit == 0 {
			break
		}
	}
	if all {
		for _, q := range k.queues {
			t.dispatch.empty[q] = true
		}
	}
	return all, nil
}

// firstLook is how many executions a claimer's first look reads: one per slot, or as many as its session last got of kinds that occupy no
// slot.
func (t *transaction) firstLook(k *claimer, a *allowance) int {
	return min(max(a.room, int(k.state.ahead.Load())), a.room+a.instant)
}

// nextLook is how many executions the next look reads, after one that read up to limit and left room; 0: it is not needed. More may be
// behind executions that occupied no slot or were moved away: a claimer with room after its last look has found its queues empty. On a
// store without other replicas it reads twice as many. Other replicas would find the executions that exceed the claimer's room locked, and
// think that the queue is empty.
func (t *transaction) nextLook(k *claimer, a *allowance, limit int, l look) int {
	switch {
	case l.instant == limit:
		if t.e.opts.Exclusive {
			limit *= 2
			k.state.ahead.Store(int32(min(limit, handoff.MostInstant)))
		}
		return min(limit, a.room+a.instant)
	case l.instant > 0:
		return a.room
	case l.moved == 0 || t.dispatch.moved >= suspendBatch:
		return 0
	case l.moved == limit:
		return max(limit, suspendBatch) // the front belongs to paused actions
	default:
		return a.room
	}
}

// look is the result of one read of a claimer's queues.
type look struct {
	more    bool // the queues may hold others: the limit was reached, or the claimer had no room for all
	moved   int  // to other routing keys
	instant int  // claimed, of kinds that occupy no slot
}

// takeFrom reads up to limit executions from a claimer's queues, once: it claims as many as the claimer has room for, and moves those of
// paused actions to routing keys of their own.
func (t *transaction) takeFrom(ctx context.Context, k *claimer, a *allowance, limit int) (look, error) {
	all, err := t.tx.Take(ctx, t.notPaused(k.queues), limit)
	if err != nil {
		return look{}, fmt.Errorf("take: %w", err)
	}
	for _, x := range all {
		t.dispatch.bytes += x.PayloadSize()
	}
	xs, err := t.suspendPaused(ctx, all)
	if err != nil {
		return look{}, fmt.Errorf("take: %w", err)
	}
	l := look{more: len(all) >= limit, moved: len(all) - len(xs)}
	for _, x := range xs {
		if a.room == 0 { // all executions behind it wait as well: executions leave a queue in order
			l.more = true
			k.state.ahead.Store(0)
			break
		}
		d := flow.Load(x) // fresh from the store: earlier decisions about it have been written
		t.add(d)
		if err := t.tried(d, func() error { return d.Claim(k.session, k.name, t.now) }); err != nil {
			return look{}, err
		}
		t.Changed(d)
		if d.Place == flow.Held {
			a.use(k, x.Kind)
			if k.state.instant(x.Kind) {
				l.instant++
			}
			t.dispatch.claimed[k] = append(t.dispatch.claimed[k], x)
		}
	}
	return l, nil
}
