package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// lanes remembers which lanes beside the queues themselves anything has ever waited in, so that workers need not look
// into those that are never used. A lane, once used, stays known to every replica.
type lanes struct {
	mu     sync.Mutex
	used   map[string]bool      // on this replica's word
	stored map[string]bool      // the store has them
	looked map[string]time.Time // when the store was last asked about one, in vain
}

func newLanes() *lanes {
	return &lanes{used: map[string]bool{}, stored: map[string]bool{}, looked: map[string]time.Time{}}
}

// laneKind marks the names of lanes among the definitions.
const laneKind = "lane"

// lookEvery is how often a replica asks the store whether others have used a lane.
const lookEvery = 5 * time.Second

// assign moves a request into the lane for the runtime that it needs, and says which; empty when it needs none.
func (e *Engine) assign(r *flow.Request) (lane string) {
	if e.opts.Runtime == nil {
		return ""
	}
	need := e.opts.Runtime(r.Kind, r.Payload())
	if need == "" {
		return ""
	}
	r.Queue = flow.Lane(r.Queue, need)
	return r.Queue
}

// keepLane makes a lane known to every replica before something is put into it.
func (e *Engine) keepLane(ctx context.Context, lane string) error {
	e.lanes.mu.Lock()
	stored := e.lanes.stored[lane]
	e.lanes.mu.Unlock()
	if !stored {
		err := persist(ctx, e.opts.Store, func(ctx context.Context, tx store.Tx) error { return defineLane(ctx, tx, lane) })
		if err != nil {
			return fmt.Errorf("declare lane %q: %w", lane, err)
		}
		e.lanes.mu.Lock()
		e.lanes.stored[lane] = true
		e.lanes.mu.Unlock()
	}
	e.useLane(lane)
	return nil
}

// keepLane does so in the turn's own transaction. Whether that commits is not known here, so it is done again until the
// store has been seen to have it.
func (t *turn) keepLane(ctx context.Context, lane string) error {
	t.e.lanes.mu.Lock()
	stored := t.e.lanes.stored[lane]
	t.e.lanes.mu.Unlock()
	if !stored {
		if err := defineLane(ctx, t.tx, lane); err != nil {
			return fmt.Errorf("declare lane %q: %w", lane, err)
		}
	}
	t.e.useLane(lane)
	return nil
}

func defineLane(ctx context.Context, tx store.Tx, lane string) error {
	now, err := tx.Now(ctx)
	if err != nil {
		return err
	}
	_, _, err = tx.Define(ctx, store.Definition{Name: laneKind + ":" + lane, Kind: laneKind, Document: []byte("{}"), CreatedAt: now})
	return err
}

// useLane lets workers look into a lane, those that wait already too.
func (e *Engine) useLane(lane string) {
	e.lanes.mu.Lock()
	fresh := !e.lanes.used[lane]
	e.lanes.used[lane] = true
	e.lanes.mu.Unlock()
	if !fresh {
		return
	}
	e.mu.Lock()
	for _, k := range e.takers {
		k.queues = e.lanes.of(k.seat)
	}
	e.ready.news = true
	e.mu.Unlock()
	e.kick()
}

// lookForLanes asks the store about the lanes that a session could serve and that this replica does not know to be used.
func (e *Engine) lookForLanes(ctx context.Context, s *seat) error {
	for _, lane := range s.lanes {
		e.lanes.mu.Lock()
		known := e.lanes.stored[lane] || time.Since(e.lanes.looked[lane]) < lookEvery
		if !known {
			e.lanes.looked[lane] = time.Now()
		}
		e.lanes.mu.Unlock()
		if known {
			continue
		}
		_, err := e.opts.Store.Definition(ctx, laneKind+":"+lane, 0)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up lane %q: %w", lane, err)
		}
		e.lanes.mu.Lock()
		e.lanes.stored[lane] = true
		e.lanes.mu.Unlock()
		e.useLane(lane)
	}
	return nil
}

// of is where a session's takers look: its queues, and the lanes of them that are used.
func (l *lanes) of(s *seat) []string {
	if len(s.lanes) == 0 {
		return s.session.Queues
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := s.session.Queues[:len(s.session.Queues):len(s.session.Queues)]
	for _, lane := range s.lanes {
		if l.used[lane] {
			all = append(all, lane)
		}
	}
	return all
}
