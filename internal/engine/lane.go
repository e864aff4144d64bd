package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// lanes remembers which lanes beside the queues themselves anything has ever waited in, so that workers need not look
// into those that are never used. A lane, once used, stays known to every replica.
type lanes struct {
	mu       sync.Mutex
	all      []string        // those that workers may serve, in the order in which they became known
	heldBack []string        // those of paused actions
	stored   map[string]bool // all of them: those that the store is known to have
	readAt   time.Time       // when the store was last asked which there are
}

func newLanes() *lanes {
	return &lanes{stored: map[string]bool{}}
}

const (
	// lookEvery is how often a replica asks the store whether others have used a lane.
	lookEvery = 5 * time.Second
	// lanesLimit bounds how many lanes there may be that workers serve: they are for kinds of machines, of which there are few, and are
	// never forgotten. Those of paused actions are as many as there are actions, in each lane, and do not count.
	lanesLimit = 4096
)

// assign moves a request into the lane for what it needs, if it needs anything. Before the request is submitted the store must have the
// lane: commitLane or writeLane. An error is *Invalid.
func (e *Engine) assign(r *flow.Request) error {
	if e.opts.Needs != nil {
		if needs := e.opts.Needs(r.Kind, r.Payload()); len(needs) > 0 {
			if i := slices.IndexFunc(needs, flow.BadNeed); i >= 0 {
				return fault.New("runtime", needs[i], fmt.Sprintf("%.100q is not the name of a runtime", needs[i]), "name one that workers have, such as sandbox or docker")
			}
			r.Queue = flow.AddNeeds(r.Queue, needs...)
		}
	}
	r.Queue = flow.ForKind(flow.PutBack(r.Queue), r.Kind) // what is run again may have ended while its action was paused
	if !flow.Narrow(r.Queue) {
		return nil
	}
	if r.Kind.ByEngine() {
		r.Queue, _ = flow.SplitLane(r.Queue) // no worker ever gets it
		return nil
	}
	if len(r.Queue) > flow.LaneLimit {
		return fault.New(selectorField, fmt.Sprintf("%.60q…", r.Queue), fmt.Sprintf("queue, handler, runtime and labels have %d bytes together, more than the %d allowed", len(r.Queue), flow.LaneLimit), "ask for fewer labels, or shorter ones")
	}
	e.lanes.mu.Lock()
	defer e.lanes.mu.Unlock()
	if len(e.lanes.all) >= lanesLimit && !e.lanes.stored[r.Queue] {
		return fault.New(selectorField, "",
			fmt.Sprintf("executions have asked for %d different sets of handlers, labels and runtimes, which is all that may be", lanesLimit),
			"ask for labels of kinds of machines, which are few, not for names of single things")
	}
	return nil
}

// place assigns a request its lane and has the store know the lane, before the request is handed in.
func (e *Engine) place(ctx context.Context, r *flow.Request) error {
	if err := e.assign(r); err != nil {
		return err
	}
	return e.commitLane(ctx, r.Queue)
}

// selectorField is the field by which submissions, actions and tasks ask for labels of workers.
const selectorField = "worker_labels"

// commitLane stores the name of a lane in a transaction of its own, which is committed when it returns. A queue that is not narrowed has
// no name to store.
func (e *Engine) commitLane(ctx context.Context, lane string) error {
	if !flow.Narrow(lane) || e.lanes.has(lane) {
		return nil
	}
	if err := catalog.PersistNames(ctx, e.opts.Store, store.LaneNames, lane); err != nil {
		return fmt.Errorf("declare lane %q: %w", lane, err)
	}
	e.storedLane(lane)
	return nil
}

// writeLane stores the name of a lane with what this transaction writes, once for each lane. That the store has the lane, and that workers
// are to look into it, is remembered when the transaction has been committed, by writtenLanes.
func (t *transaction) writeLane(ctx context.Context, lane string) error {
	if !flow.Narrow(lane) || t.effects.lanes[lane] {
		return nil
	}
	if !t.e.lanes.has(lane) {
		if _, err := t.tx.AddName(ctx, store.LaneNames, lane, t.now); err != nil {
			return fmt.Errorf("declare lane %q: %w", lane, err)
		}
	}
	if t.effects.lanes == nil {
		t.effects.lanes = map[string]bool{}
	}
	t.effects.lanes[lane] = true
	return nil
}

// has reports whether the store is known to have a lane.
func (l *lanes) has(lane string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored[lane]
}

// writtenLanes lets workers look into the lanes of a committed transaction.
func (e *Engine) writtenLanes(t *transaction) {
	for lane := range t.effects.lanes {
		e.storedLane(lane)
	}
}

// storedLane notes that the store has a lane, and lets workers look into it, those that wait already too.
func (e *Engine) storedLane(lane string) {
	e.lanes.mu.Lock()
	fresh := !e.lanes.stored[lane]
	_, held := flow.PausedAction(lane)
	switch {
	case fresh && held:
		e.lanes.heldBack = append(e.lanes.heldBack, lane)
	case fresh:
		e.lanes.all = append(e.lanes.all, lane)
	}
	e.lanes.stored[lane] = true
	e.lanes.mu.Unlock()
	if !fresh || held {
		return
	}
	e.mu.Lock()
	for _, k := range e.claimers.waiting {
		k.queues = e.lanes.of(k.state)
	}
	e.claimers.queues.recheck = true
	e.mu.Unlock()
	e.wakeCommitter()
}

// lookForLanes asks the store, once in a while, which lanes others have used.
func (e *Engine) lookForLanes(ctx context.Context, s *sessionState) error {
	if s.reach.Plain() {
		return nil
	}
	e.lanes.mu.Lock()
	due := time.Since(e.lanes.readAt) >= lookEvery
	if due {
		e.lanes.readAt = time.Now()
	}
	e.lanes.mu.Unlock()
	if !due {
		return nil
	}
	return e.readLanes(ctx)
}

// readLanes learns the lanes that the store has.
func (e *Engine) readLanes(ctx context.Context) error {
	const page = 256
	for after := ""; ; {
		lanes, err := e.opts.Store.Names(ctx, store.LaneNames, after, page)
		if err != nil {
			return fmt.Errorf("look up lanes: %w", err)
		}
		for _, lane := range lanes {
			e.storedLane(lane)
			after = lane
		}
		if len(lanes) < page {
			return nil
		}
	}
}

// of is where a session's claimers look: its queues, and the lanes that it serves of those that are used. What is returned
// does not change.
func (l *lanes) of(s *sessionState) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lane := range l.all[s.matched:] {
		if s.reach.Serves(lane) {
			s.queues = append(s.queues, lane) // beyond the end of what was returned before
		}
	}
	s.matched = len(l.all)
	return s.queues
}
