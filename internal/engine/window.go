package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	windowsAtOnce = 100
	// windowsAtMost is the time between two looks at when the next window closes. Each server looks at once after opening one; what is
	// found later was opened by another that has ended since.
	windowsAtMost = 5300 * time.Millisecond
	windowsAgain  = time.Second // after a look that failed
)

// hold has a signal held in the window of its rule and key, whose lock the transaction takes.
func (t *transaction) hold(ctx context.Context, s *flow.Signal, d *definition.Debounce, key store.WindowKey) error {
	if err := t.lockKeys(ctx, []string{key.Lock()}); err != nil {
		return err
	}
	w, known := t.loaded.windows[key]
	if !known {
		found, err := t.tx.Windows(ctx, []store.WindowKey{key})
		if err != nil {
			return err
		}
		if w, known = found[key]; !known {
			w = store.Window{WindowKey: key, Opened: t.now, First: s.Number}
		}
		if t.loaded.windows == nil {
			t.loaded.windows = map[store.WindowKey]store.Window{}
		}
	}
	w.Count, w.Last = w.Count+1, s.Number
	w.Wake = automation.Wake(d, w.Opened, t.now, w.Count)
	t.loaded.windows[key] = w
	if t.changes.windows == nil {
		t.changes.windows = map[store.WindowKey]bool{}
	}
	t.changes.windows[key] = true
	return nil
}

// writeWindows writes the windows that have changed.
func (t *transaction) writeWindows(ctx context.Context) error {
	if len(t.changes.windows) == 0 {
		return nil
	}
	var all []store.Window
	for key := range t.changes.windows {
		all = append(all, t.loaded.windows[key])
	}
	slices.SortFunc(all, func(a, b store.Window) int { return strings.Compare(a.Lock(), b.Lock()) })
	t.changes.windows, t.effects.held = nil, true
	return t.tx.PutWindows(ctx, all)
}

// closeWindows starts what windows have held signals for, when they close. Every server does so: a window is closed under its lock.
func (e *Engine) closeWindows(ctx context.Context) {
	for {
		pause, err := e.closeDue(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.opts.Log.Error("closing the windows of rules failed; it will be tried again", telemetry.Err, err)
			pause = windowsAgain
		}
		timer := time.NewTimer(min(max(pause, time.Millisecond), e.jittered(windowsAtMost)))
		select {
		case <-e.rules.held:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// closeDue closes the windows that are due, and returns how long it is until the next one is. Where there is none it costs one look at
// an index.
func (e *Engine) closeDue(ctx context.Context) (time.Duration, error) {
	_, next, err := e.opts.Store.DueWindows(ctx, time.Time{}, 1)
	if err != nil || next.IsZero() {
		return windowsAtMost, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return windowsAtMost, err
	}
	if next.After(now) {
		return next.Sub(now), nil
	}
	due, _, err := e.opts.Store.DueWindows(ctx, now, windowsAtOnce)
	if err != nil {
		return windowsAtMost, err
	}
	var failed []error
	for _, w := range due {
		if err := e.closeWindow(ctx, w); err != nil {
			if !spoiled(err) {
				return windowsAtMost, err
			}
			failed = append(failed, fmt.Errorf("window %q of rule %s: %w", w.Key, w.Rule, err))
		}
	}
	return 0, errors.Join(failed...)
}

// sameWindow reports whether a window is the one that was read before, with what it may have been given since: one that closes because it
// has been open for at_most is joined all the time.
func sameWindow(now, read store.Window) bool {
	return now.Opened.Equal(read.Opened) && now.First == read.First
}

// closeWindow starts the execution that stands for all that a window holds, unless it is another window than was read, or is to close
// later by now.
func (e *Engine) closeWindow(ctx context.Context, w store.Window) error {
	s, r, err := e.leading(ctx, w)
	if err != nil {
		return err
	}
	v, err := automation.Release(r, s)
	if err != nil {
		return err
	}
	x, err := e.enforcing(ctx, v, s.ID)
	if err != nil {
		return err
	}
	done, err := ask(ctx, e, nil, func(ctx context.Context, t *transaction) (done []flow.Enforcement, err error) {
		if err := t.lockKeys(ctx, []string{w.Lock()}); err != nil {
			return nil, err
		}
		// The same transaction may have held a signal in the window before.
		if err := t.flush(ctx); err != nil {
			return nil, err
		}
		found, err := t.tx.Windows(ctx, []store.WindowKey{w.WindowKey})
		if now, is := found[w.WindowKey]; err != nil || !is || !sameWindow(now, w) || now.Wake.After(t.now) {
			return nil, err
		}
		led := flow.Enforcement{State: x.verdict.State, Reason: x.verdict.Reason}
		if x.start != nil {
			if x.once != nil {
				if err := t.loadKeys(ctx, []string{x.once.Key}); err != nil {
					return nil, err
				}
			}
			if err := t.lead(ctx, x, &led); err != nil {
				return nil, err
			}
		}
		closing := store.Closing{WindowKey: w.WindowKey, Lead: s.Number, State: led.State, Execution: led.Execution, Reason: led.Reason}
		// What this transaction holds after that opens a window of its own.
		t.changes.closed = append(t.changes.closed, closing)
		delete(t.loaded.windows, w.WindowKey)
		if err := t.flush(ctx); err != nil {
			return nil, err
		}
		return []flow.Enforcement{led}, nil
	})
	if err == nil {
		e.counters.enforced(done)
	}
	return err
}

// leading is the signal for which a window starts its execution, and its rule as it was when that came.
func (e *Engine) leading(ctx context.Context, w store.Window) (*flow.Signal, *automation.Rule, error) {
	load := func(number int64) (*flow.Signal, *automation.Rule, error) {
		found, err := e.opts.Store.Enforcements(ctx, store.EnforcementFilter{Rule: w.Rule, Signal: number, Limit: 1})
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("it holds signal number %d, of which there is no enforcement", number)
		}
		if err != nil {
			return nil, nil, err
		}
		s, err := e.opts.Store.Signal(ctx, found[0].Signal)
		if err != nil {
			return nil, nil, err
		}
		r, err := e.ruleOf(ctx, w.Rule, found[0].Version)
		return &s, r, err
	}
	s, r, err := load(w.Last)
	if err == nil && r.Debounce != nil && r.Debounce.First && w.First != w.Last {
		s, r, err = load(w.First)
	}
	return s, r, err
}

// ruleOf is a version of a rule.
func (e *Engine) ruleOf(ctx context.Context, name string, version int) (*automation.Rule, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	d, err := e.ruleDocument(ctx, rulePrefix+name, version)
	if err != nil {
		return nil, err
	}
	return &automation.Rule{Name: name, Version: version, Rule: d.Rule}, nil
}
