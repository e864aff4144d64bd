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
	one map[flow.ID]map[*watcher]struct{}
	all map[chan struct{}]struct{}
}

// watcher is somebody who watches an execution.
type watcher struct {
	bell chan struct{}
	end  bool            // only the end counts
	over *flow.Execution // as this replica has committed its end; the payload may be missing. The hub's mu guards it.
}

func newHub() *hub {
	return &hub{one: map[flow.ID]map[*watcher]struct{}{}, all: map[chan struct{}]struct{}{}}
}

// Watch returns a channel that gets a value after commits and log writes that touch the execution or, for a workflow, one
// of its tasks. Values that nobody has taken yet are merged. stop must be called in the end.
func (e *Engine) Watch(id flow.ID) (changed <-chan struct{}, stop func()) {
	w := e.watch.add(id, false)
	return w.bell, func() { e.watch.remove(id, w) }
}

func (h *hub) add(id flow.ID, end bool) *watcher {
	w := &watcher{bell: make(chan struct{}, 1), end: end}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.one[id] == nil {
		h.one[id] = map[*watcher]struct{}{}
	}
	h.one[id][w] = struct{}{}
	return w
}

func (h *hub) remove(id flow.ID, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.one[id], w)
	if len(h.one[id]) == 0 {
		delete(h.one, id)
	}
}

// over is how the watched execution has ended; nil when that is not known here.
func (h *hub) over(w *watcher) *flow.Execution {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.over
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
		over := d.Place == flow.Finished
		if over {
			for w := range h.one[d.ID] {
				w.over = d.Execution
			}
		}
		h.ring(d.ID, over)
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
	for w := range h.one[id] {
		if ended || !w.end {
			ring(w.bell)
		}
	}
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
