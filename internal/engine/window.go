package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	windowsAtOnce = 100
	windowsAgain  = time.Second           // after a failed look
	windowsRaced  = 20 * time.Millisecond // after a look at windows that others have closed
	windowsAside  = time.Minute           // until a window that could not be closed is due again
	// windowMost is how many signals one execution represents: signals may join a window beyond its size until it is closed.
	windowMost = 1000
)

type bufferedWindows struct {
	known   map[store.WindowKey]store.Window // as the transaction has decided
	changed map[store.WindowKey]bool         // that are not written yet
	opened  bool                             // a window may close earlier than was known
}

// bufferSignal buffers a signal in the window of its rule and key. The transaction locks the window.
func (t *transaction) bufferSignal(ctx context.Context, s *flow.Signal, d *definition.Window, key store.WindowKey) error {
	if err := t.lockKeys(ctx, []string{key.Lock()}); err != nil {
		return err
	}
	h := txn.Part[bufferedWindows](t)
	w, known := h.known[key]
	if !known {
		found, err := t.tx.Windows(ctx, []store.WindowKey{key})
		if err != nil {
			return err
		}
		if w, known = found[key]; !known {
			w = store.Window{WindowKey: key, Opened: t.now, First: s.Number}
		}
		if h.known == nil {
			h.known, h.changed = map[store.WindowKey]store.Window{}, map[store.WindowKey]bool{}
		}
	}
	w.Count, w.Bytes, w.Last = w.Count+1, w.Bytes+int64(len(s.Data)), s.Number
	w.Wake = automation.ClosesAt(d, w.Opened, t.now, w.Count, w.Bytes)
	h.known[key], h.changed[key] = w, true
	return nil
}

// tellWindows wakes the loop that closes windows if one may close earlier than was known.
func (e *Engine) tellWindows(t *transaction) {
	if h := txn.MadePart[bufferedWindows](t); h != nil && h.opened {
		loop.Wake(e.rules.windowOpened)
	}
}

// writeWindows adds the changed windows to the rows to write.
func (t *transaction) writeWindows(context.Context) error {
	h := txn.MadePart[bufferedWindows](t)
	if h == nil || len(h.changed) == 0 {
		return nil
	}
	rows := t.changes.add()
	for key := range h.changed {
		rows.Windows.Open = append(rows.Windows.Open, h.known[key])
	}
	slices.SortFunc(rows.Windows.Open, func(a, b store.Window) int { return strings.Compare(a.Lock(), b.Lock()) })
	clear(h.changed)
	h.opened = true
	t.effects.addFailpoint(failpoint.WindowKept)
	return nil
}

// closeWindows closes due windows and starts their executions. Every server does so: a window is closed under its lock. A server looks at
// once after opening a window; watchPending announces windows of servers that have ended since.
func (e *Engine) closeWindows(ctx context.Context) {
	loop.Repeat(ctx, e.opts.Log, "closing the windows of rules", windowsAgain, e.rules.windowOpened, func(ctx context.Context) (time.Duration, error) {
		pause, err := e.closeDue(ctx)
		return min(max(pause, time.Millisecond), loop.IdleAtMost), err
	})
}

// closeDue closes the due windows, and returns the time until the next one is due. If there is none, it reads an index once.
func (e *Engine) closeDue(ctx context.Context) (time.Duration, error) {
	_, next, err := e.opts.Store.DueWindows(ctx, time.Time{}, 1)
	if err != nil || next.IsZero() {
		return loop.IdleAtMost, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return loop.IdleAtMost, err
	}
	if next.After(now) {
		return next.Sub(now), nil
	}
	// Windows that wait for their turns stay due, and come first.
	due, _, err := e.opts.Store.DueWindows(ctx, now, windowsAtOnce+e.rules.closes.Len())
	if err != nil {
		return loop.IdleAtMost, err
	}
	pause := windowsRaced
	budget := e.budget
	for _, w := range due {
		if e.rules.closes.Has(w.WindowKey) {
			continue
		}
		if budget.Spent() {
			pause = 0
			break
		}
		budget.Compute(definition.QuickWork)
		budget.Decode(int(w.Bytes))
		closed, err := e.closeOrLeave(ctx, w, false)
		if err != nil {
			return loop.IdleAtMost, err
		}
		if closed {
			pause = 0
		}
	}
	if key, _, waits := e.rules.closes.Take(); waits {
		e.rules.closes.Drop(key)
		pause = 0
		if n := slices.IndexFunc(due, func(w store.Window) bool { return w.WindowKey == key }); n >= 0 { // else another server has closed it
			_, err = e.closeOrLeave(ctx, due[n], true)
		}
	}
	return pause, err
}

// errCostly means that a document takes longer than a first look may, and waits for its turn.
var errCostly = errors.New("it waits for its turn")

// closeOrLeave closes a window. If its closing is refused, it fails or is put off; if its rule is costly, it waits for its turn. The error
// is one of the store alone.
func (e *Engine) closeOrLeave(ctx context.Context, w store.Window, turn bool) (closed bool, err error) {
	closed, err = e.closeWindow(ctx, w, turn)
	switch {
	case errors.Is(err, errCostly):
		e.rules.closes.Add(w.WindowKey, struct{}{})
		return false, nil
	case errors.Is(err, errUndecoded): // another server may have a later version of Pawl and can close it
		err = e.leaveWindow(ctx, w, err)
	case err != nil && fault.Lasting(err):
		if closed, err = e.failWindow(ctx, w, err); err != nil && fault.Lasting(err) {
			err = e.leaveWindow(ctx, w, err)
		}
	}
	return closed, err
}

// failWindow closes a window whose closing was refused: the buffered signals are recorded as failed, with the reason.
func (e *Engine) failWindow(ctx context.Context, w store.Window, why error) (closed bool, err error) {
	defer fault.Recovered(&err)
	log := e.opts.Log.With("rule", w.Rule, "window", w.Key)
	log.Error("a window cannot be closed: its rule has failed", telemetry.Err, why)
	x := &plannedEnforcement{}
	x.fail(why)
	k := &closing{window: w, plan: x}
	if k.part, err = e.opts.Store.BufferedSignals(ctx, w.WindowKey, windowMost); err != nil {
		return false, err
	}
	if len(k.part) == 0 {
		return false, e.dropEmpty(ctx, w)
	}
	if n := slices.IndexFunc(k.part, func(s flow.Signal) bool { return s.Damage == "" }); n > 0 {
		k.part = k.part[:n] // those after them are closed separately
	}
	k.leadSignal = &k.part[0]
	result, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (*flow.Enforcement, error) { return t.closeWindow(ctx, k) })
	if err == nil && result != nil {
		e.counters.enforced([]flow.Enforcement{*result})
	}
	return result != nil, err
}

// leaveWindow postpones by windowsAside a window that can neither be closed nor be failed, so that later windows close.
// It returns errors of the store only.
func (e *Engine) leaveWindow(ctx context.Context, w store.Window, why error) error {
	log := e.opts.Log.With("rule", w.Rule, "window", w.Key)
	err := e.do(ctx, nil, func(ctx context.Context, t *transaction) error { return t.postponeWindow(ctx, w) })
	switch {
	case err == nil:
		e.counters.aside.Add(1)
		log.Error("a window was put aside: neither its closing nor its failure is taken", "pause", windowsAside, telemetry.Err, why)
	case fault.Lasting(err):
		e.counters.skipped.Add(1)
		log.Error("a window can neither be closed nor be put aside; it will be tried again", telemetry.Err, err)
		return nil
	}
	return err
}

// dropEmpty removes a window without signals, unless it has changed. A window whose signals cannot be found is postponed for a while.
func (e *Engine) dropEmpty(ctx context.Context, w store.Window) error {
	return e.do(ctx, nil, func(ctx context.Context, t *transaction) error {
		if err := t.lockKeys(ctx, []string{w.Lock()}); err != nil {
			return err
		}
		found, err := t.tx.Windows(ctx, []store.WindowKey{w.WindowKey})
		now, ok := found[w.WindowKey]
		if err != nil || !ok || !sameWindow(now, w) {
			return err
		}
		buffered, err := t.tx.BufferedIn(ctx, w.WindowKey, 1)
		if err != nil {
			return err
		}
		if len(buffered) > 0 {
			return t.postponeWindow(ctx, w)
		}
		delete(txn.Part[bufferedWindows](t).known, w.WindowKey)
		rows := t.changes.add()
		rows.Windows.Dropped = append(rows.Windows.Dropped, w.WindowKey)
		return nil
	})
}

// postponeWindow moves the time at which a window closes.
func (t *transaction) postponeWindow(ctx context.Context, w store.Window) error {
	if err := t.lockKeys(ctx, []string{w.Lock()}); err != nil {
		return err
	}
	found, err := t.tx.Windows(ctx, []store.WindowKey{w.WindowKey})
	now, ok := found[w.WindowKey]
	if err != nil || !ok || now.Wake.After(t.now) {
		return err
	}
	now.Wake = t.now.Add(windowsAside)
	rows := t.changes.add()
	rows.Windows.Open = append(rows.Windows.Open, now)
	return nil
}

// sameWindow reports whether a window is the one that was read before. It may buffer more signals by now: signals join a window that has
// been open for at_most until it is closed.
func sameWindow(now, read store.Window) bool {
	return now.Opened.Equal(read.Opened) && now.First == read.First
}
