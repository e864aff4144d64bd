package engine

import (
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// hub wakes whoever watches an execution. A wake-up is a hint: watchers read the store, and look again after a while in
// any case.
type hub struct {
	mu  sync.Mutex
	one map[flow.ID]map[chan struct{}]bool // true: only the end counts
	all map[chan struct{}]struct{}
}

func newHub() *hub {
	return &hub{one: map[flow.ID]map[chan struct{}]bool{}, all: map[chan struct{}]struct{}{}}
}

// Watch returns a channel that gets a value after commits and log writes that touch the execution or, for a workflow, one
// of its tasks. Values that nobody has taken yet are merged. stop must be called in the end.
func (e *Engine) Watch(id flow.ID) (changed <-chan struct{}, stop func()) {
	return e.watchOne(id, false)
}

// WatchEnd is Watch for whoever waits for the end only: what this replica knows to be less wakes nobody.
func (e *Engine) WatchEnd(id flow.ID) (changed <-chan struct{}, stop func()) {
	return e.watchOne(id, true)
}

func (e *Engine) watchOne(id flow.ID, end bool) (changed <-chan struct{}, stop func()) {
	h, c := e.watch, make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.one[id] == nil {
		h.one[id] = map[chan struct{}]bool{}
	}
	h.one[id][c] = end
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.one[id], c)
		if len(h.one[id]) == 0 {
			delete(h.one, id)
		}
	}
}

// WatchAll is Watch for every execution.
func (e *Engine) WatchAll() (changed <-chan struct{}, stop func()) {
	h, c := e.watch, make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.all, c)
	}
}

func (h *hub) changed(drafts []*flow.Draft) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(drafts) == 0 {
		return
	}
	for c := range h.all {
		ring(c)
	}
	if len(h.one) == 0 {
		return
	}
	for _, d := range drafts {
		h.ring(d.ID, d.Place == flow.Finished)
		h.ring(d.Parent, false)
	}
}

// elsewhere rings for what other replicas have changed.
func (h *hub) elsewhere(ids []flow.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.all {
		ring(c)
	}
	for _, id := range ids {
		h.ring(id, true)
	}
}

// everybody rings for whatever may have changed.
func (h *hub) everybody() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.all {
		ring(c)
	}
	for id := range h.one {
		h.ring(id, true)
	}
}

func (h *hub) logged(chunks []store.LogChunk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range chunks {
		h.ring(chunks[i].Execution, false)
	}
}

// ring wakes who watches an execution; ended says that it may have ended.
func (h *hub) ring(id flow.ID, ended bool) {
	for c, end := range h.one[id] {
		if ended || !end {
			ring(c)
		}
	}
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
