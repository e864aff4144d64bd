package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// later is a store in which one definition's document is of a later version of Pawl.
type later struct {
	store.Store
	name atomic.Pointer[string]
}

func (s *later) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	d, err := s.Store.Definition(ctx, name, version)
	if of := s.name.Load(); of != nil && *of == name {
		d.Document = []byte(`{"of": "a later version"}`)
	}
	return d, err
}

// rewrite makes a definition one of a later version, and the engine read its rules and triggers again.
func (s *later) rewrite(r *rig, name string) {
	r.Helper()
	s.name.Store(&name)
	r.e.rules.mu.Lock()
	clear(r.e.rules.documents)
	r.e.rules.mu.Unlock()
	r.e.rules.current.Store(nil)
	if _, err := r.e.readRules(r.ctx, 0); err != nil {
		r.Fatal(err)
	}
}

// A server that cannot decode the version of a rule that buffered signals leaves the window to others.
func TestWindowOfALaterVersion(t *testing.T) {
	t.Parallel()
	s := &later{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.apply(fmt.Sprintf(debounced, "1h", "3h", "last"))
	id := r.emitN("x", 1)
	s.rewrite(r, "rule:d")
	aside := r.e.Stats().PutAside
	r.clock.move(0, 61*time.Minute, 0)
	loop.Wake(r.e.rules.windowOpened)
	r.within(patience, "the window was not put aside", func() bool { return r.e.Stats().PutAside > aside })
	if got := r.enforced(id); got != "d held" {
		r.Error(got)
	}
	s.rewrite(r, "")
	r.clock.move(0, 2*windowsAside, 0)
	loop.Wake(r.e.rules.windowOpened)
	r.within(patience, "the window was not closed", func() bool { return r.enforced(id) == "d ran" })
}

// Signals of a trigger whose document this server cannot read are kept: another server may know a long retention.
func TestRetentionOfALaterVersion(t *testing.T) {
	t.Parallel()
	s := &later{}
	r := newRig(t, func(o *Options) { s.Store, o.Store, o.SignalRetention = o.Store, s, time.Hour })
	r.apply("kind: trigger\nname: long\nkeep: 30d\n")
	long, other := r.emit(Emission{Trigger: "long"}).Signal, r.emit(Emission{Trigger: "other"}).Signal
	s.rewrite(r, "trigger:long")
	r.clock.move(0, 48*time.Hour, 0)
	if _, err := r.e.dropSignals(r.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Signal(r.ctx, long); err != nil {
		t.Errorf("of the trigger that cannot be read: %v", err)
	}
	if _, err := r.store.Signal(r.ctx, other); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of another one: %v", err)
	}
}

// An empty window is removed.
func TestEmptyWindow(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply(fmt.Sprintf(batched, 1, "1h", "1MB"))
		id := r.emitN("x", 1)
		r.within(patience, "the batch did not run", func() bool { return strings.HasSuffix(r.enforced(id), " ran") })
		rule, _, _ := strings.Cut(r.enforced(id), " ")
		n := r.signal(id).Number
		for _, number := range []int64{n, n + 1000} { // one that is not buffered any more, and one that does not exist
			key := store.WindowKey{Rule: rule, Key: fmt.Sprint(number)}
			past := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
			if err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
				return tx.Apply(ctx, store.Delta{Windows: store.WindowRows{Open: []store.Window{{WindowKey: key, Opened: past, Wake: past, Count: 1, First: number, Last: number}}}})
			}); err != nil {
				r.Fatal(err)
			}
			loop.Wake(r.e.rules.windowOpened)
			r.within(patience, "the window is still there", func() bool {
				_, err := r.store.Window(r.ctx, key)
				return errors.Is(err, store.ErrNotFound)
			})
		}
	})
}

// A signal that cannot be read fails, whether it leads a window or is in a batch, and cannot be retried; the other signals run.
func TestWindowsOfDamagedSignals(t *testing.T) {
	t.Parallel()
	s := &damaging{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	defer s.mended.Store(true)
	r.apply("kind: rule\nname: b\non: t\nbatch: {key: k, size: 3, wait: 1h}\nrun: {action: noop, input: '${{ signals.map(s, s.data.n) }}'}\n---\n" +
		strings.Replace(fmt.Sprintf(debounced, "1h", "3h", "last"), "input: {n: '${{ signal.data.n }}'}", "input: {}", 1))
	var ids []flow.ID
	for i, subject := range []string{"x", "damaged", "y"} {
		ids = append(ids, r.emitN(subject, i))
	}
	done := func(id flow.ID) func() bool { return func() bool { return !strings.Contains(r.enforced(id), "held") } }
	r.clock.move(0, 61*time.Minute, 0)
	for i, want := range []string{"b ran, d ran", "b failed action, d failed action", "b ran, d ran"} {
		r.within(patience, "a signal is still held", func() bool {
			loop.Wake(r.e.rules.windowOpened)
			return done(ids[i])()
		})
		if got := r.enforced(ids[i]); got != want {
			r.Errorf("signal %d: %s, want %s", i, got, want)
		}
	}
	if _, err := r.e.RetryEnforcement(r.ctx, ids[1], "b"); err == nil || !strings.Contains(err.Error(), plantedDamage) {
		r.Errorf("retry: %v", err)
	}
}

// A rule that buffers signals runs no more often than its storm allows, and pauses itself.
func TestStormOfWindows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("kind: rule\nname: d\non: t\nstorm: {limit: 2, per: 1h}\ndebounce: {key: '${{ signal.subject }}', quiet: 1h, at_most: 2h}\nrun: {action: noop}\n")
	var ids []flow.ID
	for i := range 6 {
		ids = append(ids, r.emitN(fmt.Sprint(i), i))
	}
	r.clock.move(0, 61*time.Minute, 0)
	counts := map[string]int{}
	r.within(patience, "a signal is still held", func() bool {
		loop.Wake(r.e.rules.windowOpened)
		clear(counts)
		for _, id := range ids {
			counts[r.enforced(id)]++
		}
		return counts["d held"] == 0
	})
	if counts["d ran"] != 2 || counts["d refused storm"] != 4 {
		r.Errorf("%v", counts)
	}
	if rule, _, err := r.e.Rule(r.ctx, "d"); err != nil || !rule.Paused {
		r.Errorf("%+v, %v", rule, err)
	}
}

// ordering is a store that records what the transaction of a retry locks, in order, and counts the reads of switches.
type ordering struct {
	store.Store
	locks    atomic.Pointer[[]string]
	switches atomic.Int64
}

func (s *ordering) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &orderingTx{Tx: tx, s: s}) })
}

type orderingTx struct {
	store.Tx
	s     *ordering
	locks []string
}

func (t *orderingTx) LockKeys(ctx context.Context, names []string) (map[string]store.KeyUse, error) {
	t.locks = append(t.locks, names...)
	return t.Tx.LockKeys(ctx, names)
}

func (t *orderingTx) LockEnforcement(ctx context.Context, number int64, rule string) (flow.Enforcement, error) {
	locks := append(t.locks, "enforcement")
	t.s.locks.Store(&locks)
	return t.Tx.LockEnforcement(ctx, number, rule)
}

func (t *orderingTx) LatestSwitches(ctx context.Context, names []string) (map[string]store.Switch, int64, error) {
	t.s.switches.Add(1)
	return t.Tx.LatestSwitches(ctx, names)
}

// A retry locks the window that it joins before the enforcement, as the closing of that window does.
func TestRetryLocksInOrder(t *testing.T) {
	t.Parallel()
	s := &ordering{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.apply(ruleWith("signal.data.host != ''", "{}"))
	bad := r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{"n":1}`)}).Signal
	r.apply("kind: rule\nname: r\non: t\nbatch: {key: k, size: 2, wait: 1h}\nrun: {action: noop}\n")
	if e, err := r.e.RetryEnforcement(r.ctx, bad, "r"); err != nil || e.State != flow.EnforcementBuffered {
		t.Fatalf("%+v %v", e, err)
	}
	if got := fmt.Sprint(*s.locks.Load()); got != "[@window:r:k enforcement]" {
		t.Error(got)
	}
}

// The rules of all receivers that answered 410 are read together.
func TestReceiversGoneTogether(t *testing.T) {
	t.Parallel()
	s := &ordering{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.apply(fmt.Sprintf(notice, "a"))
	w := r.worker()
	for n := range 8 {
		r.emitN("x", n)
	}
	work := w.take(8)
	before := s.switches.Load()
	var fail []func() error
	for _, a := range work {
		fail = append(fail, func() error {
			w.fail(a, flow.CodeGone)
			return nil
		})
	}
	r.inOneBatch(fail...)
	if n := s.switches.Load() - before; n < 1 || n > 3 { // the batch may have been divided
		t.Errorf("%d looks for the switches of %d webhooks", n, len(work))
	}
	if rule, _, err := r.e.Rule(r.ctx, "tell"); err != nil || !rule.Paused {
		t.Errorf("%+v, %v", rule, err)
	}
}
