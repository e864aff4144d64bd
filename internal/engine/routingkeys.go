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

// routingKeys holds the routing keys, beside the names of queues, under which any execution has ever waited, so that workers do not read
// keys that were never used. A used routing key stays known to every replica.
type routingKeys struct {
	mu        sync.Mutex
	all       []string        // those that workers may serve, in the order of discovery
	suspended []string        // those of paused actions
	stored    map[string]bool // all keys that the store is known to have
	readAt    time.Time       // when the store's keys were last read
}

func newRoutingKeys() *routingKeys {
	return &routingKeys{stored: map[string]bool{}}
}

const (
	// lookEvery is how often a replica reads the routing keys that others have used.
	lookEvery = 5 * time.Second
	// routingKeysLimit bounds the routing keys that workers serve: they stand for kinds of machines, which are few, and are never forgotten.
	// Those of paused actions, one per action and routing key, do not count.
	routingKeysLimit = 4096
)

// assign moves a request under the routing key for its needs, if it has any. The caller must store the routing key before the request is
// submitted: commitRoutingKey or writeRoutingKey. An error is *Invalid.
func (e *Engine) assign(r *flow.Request) error {
	if e.opts.Needs != nil {
		if needs := e.opts.Needs(r.Kind, r.Payload()); len(needs) > 0 {
			if i := slices.IndexFunc(needs, flow.BadNeed); i >= 0 {
				return fault.New("runtime", needs[i], fmt.Sprintf("%.100q is not the name of a runtime", needs[i]),
					"name one that workers have, such as sandbox or docker")
			}
			r.Queue = flow.AddNeeds(r.Queue, needs...)
		}
	}
	r.Queue = flow.ForKind(flow.ResumedKey(r.Queue), r.Kind) // the original of a rerun may have ended while its action was paused
	if !flow.Narrow(r.Queue) {
		return nil
	}
	if r.Kind.ByEngine() {
		r.Queue, _ = flow.SplitRoutingKey(r.Queue) // no worker ever gets it
		return nil
	}
	if len(r.Queue) > flow.RoutingKeyLimit {
		return fault.New(selectorField, fmt.Sprintf("%.60q…", r.Queue),
			fmt.Sprintf("queue, handler, runtime and labels have %d bytes together, more than the %d allowed", len(r.Queue), flow.RoutingKeyLimit),
			"ask for fewer labels, or shorter ones")
	}
	e.routingKeys.mu.Lock()
	defer e.routingKeys.mu.Unlock()
	if len(e.routingKeys.all) >= routingKeysLimit && !e.routingKeys.stored[r.Queue] {
		return fault.New(selectorField, "",
			fmt.Sprintf("executions have asked for %d different sets of handlers, labels and runtimes, which is all that may be", routingKeysLimit),
			"ask for labels of kinds of machines, which are few, not for names of single things")
	}
	return nil
}

// place assigns a request its routing key and stores the key, before the request is enqueued.
func (e *Engine) place(ctx context.Context, r *flow.Request) error {
	if err := e.assign(r); err != nil {
		return err
	}
	return e.commitRoutingKey(ctx, r.Queue)
}

// selectorField is the field by which submissions, actions and tasks ask for labels of workers.
const selectorField = "worker_labels"

// commitRoutingKey stores a routing key in a separate transaction, which is committed when it returns. The plain name of a queue is not
// stored.
func (e *Engine) commitRoutingKey(ctx context.Context, routingKey string) error {
	if !flow.Narrow(routingKey) || e.routingKeys.has(routingKey) {
		return nil
	}
	if err := catalog.PersistNames(ctx, e.opts.Store, store.RoutingKeyNames, routingKey); err != nil {
		return fmt.Errorf("declare routing key %q: %w", routingKey, err)
	}
	e.rememberRoutingKey(routingKey)
	return nil
}

// writeRoutingKey adds a routing key to the rows of this transaction, once. After the commit, rememberRoutingKeys records that the store
// has it, and that workers must read it.
func (t *transaction) writeRoutingKey(ctx context.Context, routingKey string) error {
	if !flow.Narrow(routingKey) || t.effects.routingKeys[routingKey] {
		return nil
	}
	if !t.e.routingKeys.has(routingKey) {
		if _, err := t.tx.AddName(ctx, store.RoutingKeyNames, routingKey, t.now); err != nil {
			return fmt.Errorf("declare routing key %q: %w", routingKey, err)
		}
	}
	if t.effects.routingKeys == nil {
		t.effects.routingKeys = map[string]bool{}
	}
	t.effects.routingKeys[routingKey] = true
	return nil
}

// has reports whether the store is known to have a routing key.
func (l *routingKeys) has(routingKey string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored[routingKey]
}

// rememberRoutingKeys lets workers read the routing keys of a committed transaction.
func (e *Engine) rememberRoutingKeys(t *transaction) {
	for routingKey := range t.effects.routingKeys {
		e.rememberRoutingKey(routingKey)
	}
}

// rememberRoutingKey records that the store has a routing key, and lets workers read it, waiting ones too.
func (e *Engine) rememberRoutingKey(routingKey string) {
	e.routingKeys.mu.Lock()
	fresh := !e.routingKeys.stored[routingKey]
	_, suspended := flow.PausedAction(routingKey)
	switch {
	case fresh && suspended:
		e.routingKeys.suspended = append(e.routingKeys.suspended, routingKey)
	case fresh:
		e.routingKeys.all = append(e.routingKeys.all, routingKey)
	}
	e.routingKeys.stored[routingKey] = true
	e.routingKeys.mu.Unlock()
	if !fresh || suspended {
		return
	}
	e.mu.Lock()
	for _, k := range e.claimers.waiting {
		k.queues = e.routingKeys.of(k.state)
	}
	e.claimers.queues.recheck = true
	e.mu.Unlock()
	e.wakeCommitter()
}

// refreshRoutingKeys reads, from time to time, the routing keys that others have used.
func (e *Engine) refreshRoutingKeys(ctx context.Context, s *sessionState) error {
	if s.reach.Plain() {
		return nil
	}
	e.routingKeys.mu.Lock()
	due := time.Since(e.routingKeys.readAt) >= lookEvery
	if due {
		e.routingKeys.readAt = time.Now()
	}
	e.routingKeys.mu.Unlock()
	if !due {
		return nil
	}
	return e.readRoutingKeys(ctx)
}

func (e *Engine) readRoutingKeys(ctx context.Context) error {
	const page = 256
	for after := ""; ; {
		routingKeys, err := e.opts.Store.Names(ctx, store.RoutingKeyNames, after, page)
		if err != nil {
			return fmt.Errorf("look up routing keys: %w", err)
		}
		for _, routingKey := range routingKeys {
			e.rememberRoutingKey(routingKey)
			after = routingKey
		}
		if len(routingKeys) < page {
			return nil
		}
	}
}

// of returns the queues of a session and the used routing keys that it serves: its claimers read them. The returned list is never changed.
func (l *routingKeys) of(s *sessionState) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, routingKey := range l.all[s.matched:] {
		if s.reach.Serves(routingKey) {
			s.queues = append(s.queues, routingKey) // beyond the end of earlier results
		}
	}
	s.matched = len(l.all)
	return s.queues
}
