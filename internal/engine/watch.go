package engine

import (
	"sync"

	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
)

// watchers wakes the goroutines that watch executions. A wake-up is a hint: watchers read the store, and read it again after a while in any
// case.
type watchers struct {
	mu  sync.Mutex
	one map[flow.ID]map[*watcher]struct{}
	all map[chan struct{}]struct{}
}

// watcher is one call that watches an execution.
type watcher struct {
	changed chan struct{}   // capacity 1
	end     bool            // only the end counts
	over    *flow.Execution // the ended execution, if this replica has committed its end; the payload may be missing. watchers.mu guards it.
}

func newWatchers() *watchers {
	return &watchers{one: map[flow.ID]map[*watcher]struct{}{}, all: map[chan struct{}]struct{}{}}
}

// Watch returns a channel that gets a value after commits and log writes that touch the execution or, for a workflow, one of its tasks.
// Unread values are merged. The caller must call stop.
func (e *Engine) Watch(id flow.ID) (changed <-chan struct{}, stop func()) {
	w := e.watch.add(id, false)
	return w.changed, func() { e.watch.remove(id, w) }
}

func (b *watchers) add(id flow.ID, end bool) *watcher {
	w := &watcher{changed: make(chan struct{}, 1), end: end}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.one[id] == nil {
		b.one[id] = map[*watcher]struct{}{}
	}
	b.one[id][w] = struct{}{}
	return w
}

func (b *watchers) remove(id flow.ID, w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.one[id], w)
	if len(b.one[id]) == 0 {
		delete(b.one, id)
	}
}

// over is the ended execution; nil if this replica does not know its end.
func (b *watchers) over(w *watcher) *flow.Execution {
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.over
}

// WatchAll is Watch for every execution. It also fires when sessions of workers begin and end, for pauses, and for new signals.
func (e *Engine) WatchAll() (changed <-chan struct{}, stop func()) {
	b, c := e.watch, make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.all, c)
	}
}

// HearsPeers reports whether watchers learn of the commits of other replicas, or there are none. Without notifications of the store they do
// not. A notification may come late, and is lost if its connection breaks.
func (e *Engine) HearsPeers() bool { return e.opts.Exclusive || e.notified.Load() }

// wakeAll wakes the watchers of all executions, for a change of something else: a session, a pause, a signal.
func (b *watchers) wakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalAll()
}

// signalAll is wakeAll for a caller that holds b.mu.
func (b *watchers) signalAll() {
	for c := range b.all {
		loop.Wake(c)
	}
}

// changed wakes the watchers of the executions in a commit. It returns how many of them waited for an end that the commit has brought.
func (b *watchers) changed(all []*flow.Execution) (ended int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(all) == 0 {
		return 0
	}
	b.signalAll()
	if len(b.one) == 0 {
		return 0
	}
	for _, x := range all {
		over := x.Place == flow.Finished
		if over {
			for w := range b.one[x.ID] {
				w.over = x
				if w.end {
					ended++
				}
			}
		}
		b.wake(x.ID, over)
		b.wake(x.Parent, false)
	}
	return ended
}

// changedByPeers wakes the watchers of executions that other replicas have changed.
func (b *watchers) changedByPeers(ids []flow.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalAll()
	for _, id := range ids {
		b.wake(id, true)
	}
}

// broadcast wakes every watcher: anything may have changed.
func (b *watchers) broadcast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalAll()
	for id := range b.one {
		b.wake(id, true)
	}
}

func (b *watchers) logged(chunks []flow.LogChunk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range chunks {
		b.wake(chunks[i].Execution, false)
	}
}

// wake wakes the watchers of an execution; ended: it may have ended.
func (b *watchers) wake(id flow.ID, ended bool) {
	for w := range b.one[id] {
		if ended || !w.end {
			loop.Wake(w.changed)
		}
	}
}
