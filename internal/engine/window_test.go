package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const debounced = "kind: rule\nname: d\non: t\nif: default(signal.data.skip, false) == false\ndebounce: {key: '${{ signal.subject }}', quiet: %s, at_most: %s, keep: %s}\nrun: {action: noop, input: {n: '${{ signal.data.n }}'}}\n"

// closes closes the due windows.
func (r *rig) closes() {
	r.Helper()
	for {
		if pause, err := r.e.closeDue(r.ctx); err != nil {
			r.Fatal(err)
		} else if pause > windowsRaced { // less: the engine's own loop is closing them
			return
		}
	}
}

// inputs are the inputs of all executions of an action, in the order of their creation.
func (r *rig) inputs(action string) string {
	r.Helper()
	all, err := store.List(r.ctx, r.store, store.Filter{Action: action, Limit: 100})
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for i := len(all) - 1; i >= 0; i-- {
		out = append(out, string(r.get(all[i].ID).Input))
	}
	return strings.Join(out, " ")
}

func (r *rig) emitN(subject string, n int) flow.ID {
	r.Helper()
	return r.emit(Emission{Trigger: "t", Subject: subject, Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}).Signal
}

// One execution represents all signals until none has come for a while, separately for each key.
func TestDebounce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(fmt.Sprintf(debounced, "1h", "3h", "last"))
	first := r.emitN("x", 1)
	r.clock.move(0, 30*time.Minute, 0)
	r.emitN("x", 2)
	r.emitN("y", 3)
	r.clock.move(0, 45*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != "" {
		t.Errorf("before it is quiet: %s", got)
	}
	if got := r.enforced(first); got != "d held" {
		t.Errorf("%s", got)
	}
	if got := r.whySignal(first, ""); !strings.Contains(got, `is held in window "x"`) {
		t.Error(got)
	}
	last := r.emitN("x", 4)
	r.clock.move(0, 20*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != `{"n":3}` {
		t.Errorf("y alone is quiet: %s", got)
	}
	r.clock.move(0, 45*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != `{"n":3} {"n":4}` {
		t.Errorf("both are quiet: %s", got)
	}
	if got := r.enforced(first) + ", " + r.enforced(last); got != "d folded, d ran" {
		t.Errorf("%s", got)
	}
	again := r.emitN("x", 5)
	if got := r.enforced(again); got != "d held" {
		t.Errorf("%s", got)
	}
}

// A window closes even if signals never stop coming, and may keep the first of them.
func TestDebounceAtMost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(fmt.Sprintf(debounced, "1h", "2h", "first"))
	for n := range 3 {
		r.emitN("x", n)
		r.clock.move(0, 45*time.Minute, 0)
		r.closes()
	}
	if got := r.inputs("noop"); got != `{"n":0}` {
		t.Errorf("%s", got)
	}
}

// On either store, with servers that close windows at once, each signal is enforced once.
func TestDebounceRaces(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		other := r.e
		if !r.e.opts.Exclusive {
			other = r.replica(func(o *Options) { o.Uptime = nil })
		}
		r.apply(fmt.Sprintf(debounced, "20ms", "50ms", "last"))
		r.e.Settle(r.ctx)
		done := make(chan error, 4)
		const each = 25
		for i := range cap(done) {
			go func() {
				for n := range each {
					if _, err := []*Engine{r.e, other}[i%2].Emit(r.ctx, []Emission{{Trigger: "t", Subject: fmt.Sprint(n % 3), Data: json.RawMessage(`{"n":1}`)}}); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				r.Fatal(err)
			}
		}
		counts := map[string]int{}
		r.within(patience, "something is still held", func() bool {
			all, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{Limit: 1000})
			if err != nil {
				r.Fatal(err)
			}
			clear(counts)
			for _, e := range all {
				counts[e.State.String()]++
			}
			return counts["held"] == 0 && len(all) == each*cap(done)
		})
		ran, err := store.List(r.ctx, r.store, store.Filter{Limit: 1000})
		if err != nil || len(ran) != counts["ran"] || counts["ran"]+counts["folded"] != each*cap(done) || counts["ran"] < 3 {
			r.Errorf("%d executions, %v, %v", len(ran), counts, err)
		}
	})
}

// shaded is a store in which the engine's loop finds no due window until the test allows it.
type shaded struct {
	store.Store
	open atomic.Bool
}

func (s *shaded) DueWindows(ctx context.Context, now time.Time, n int) ([]store.Window, time.Time, error) {
	if !s.open.Load() {
		return nil, time.Time{}, nil
	}
	return s.Store.DueWindows(ctx, now, n)
}

// A signal and the closing of its window may go into one transaction, in either order: the signal is folded, or buffered in a new window.
func TestWindowClosesBesideSignal(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"the signal", "the closing"} {
		t.Run(first+" first", func(t *testing.T) {
			s := &shaded{} // otherwise the loop would close the window in its own transaction
			r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
			r.apply(fmt.Sprintf(debounced, "10h", "12h", "last"))
			held := r.emitN("x", 1)
			now, err := r.e.now(r.ctx)
			if err != nil {
				t.Fatal(err)
			}
			due, _, err := r.store.DueWindows(r.ctx, now.Add(20*time.Hour), 10) // the engine's own loop may close it once the clock has moved
			if err != nil || len(due) != 1 {
				t.Fatalf("%v %v", due, err)
			}
			r.clock.move(0, 20*time.Hour, 0)
			var again flow.ID
			emit := func() error {
				out, err := r.e.Emit(r.ctx, []Emission{{Trigger: "t", Subject: "x", Data: json.RawMessage(`{"n":2}`)}})
				if err == nil {
					again = out[0].Signal
				}
				return err
			}
			do := []func() error{emit, func() error { _, err := r.e.closeWindow(r.ctx, due[0], false); return err }}
			if first != "the signal" {
				do[0], do[1] = do[1], do[0]
			}
			r.inOneBatch(do...)
			if got := r.enforced(held); got != "d ran" && got != "d folded" {
				t.Errorf("what the window held: %s", got)
			}
			s.open.Store(true)
			r.clock.move(0, 20*time.Hour, 0)
			r.closes()
			if a, b := r.enforced(held), r.enforced(again); a == "d held" || b == "d held" {
				t.Errorf("%s, %s", a, b)
			}
			if broken, err := r.store.Check(r.ctx); err != nil || len(broken) > 0 {
				t.Errorf("%v %v", broken, err)
			}
		})
	}
}

// inOneBatch makes requests wait for a transaction one after the other, and go into it together.
func (r *rig) inOneBatch(do ...func() error) {
	r.Helper()
	begun, release := make(chan struct{}), make(chan struct{})
	errs := make(chan error, 1+len(do))
	go func() {
		errs <- r.e.do(r.ctx, nil, func(context.Context, *transaction) error {
			close(begun)
			<-release
			return nil
		})
	}()
	<-begun
	pending := func() int {
		r.e.mu.Lock()
		defer r.e.mu.Unlock()
		return r.e.batcher.pending()
	}
	for i := range do {
		before := pending()
		go func() { errs <- do[i]() }()
		r.within(patience, "a request does not wait", func() bool { return pending() > before })
	}
	close(release)
	for range cap(errs) {
		if err := <-errs; err != nil {
			r.Fatal(err)
		}
	}
}

// A window that gets more signals before it closes than one execution represents is closed in parts.
func TestWindowOverItsSize(t *testing.T) {
	t.Parallel()
	const more = 300
	for keep, leads := range map[string][]int{"last": {windowMost - 1, windowMost + more - 1}, "first": {0, windowMost}} {
		t.Run(keep, func(t *testing.T) {
			s := &shaded{}
			r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
			r.apply(fmt.Sprintf(debounced, "10h", "12h", keep))
			for n := 0; n < windowMost+more; {
				var some []Emission
				for range 100 {
					some = append(some, Emission{Trigger: "t", Subject: "x", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
					n++
				}
				if _, err := r.e.Emit(r.ctx, some); err != nil {
					t.Fatal(err)
				}
			}
			s.open.Store(true)
			r.closes()
			r.clock.move(0, 20*time.Hour, 0)
			r.closes()
			want := fmt.Sprintf(`{"n":%d} {"n":%d}`, leads[0], leads[1])
			if got := r.inputs("noop"); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			stands := map[flow.ID]int{}
			all, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{Limit: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range all {
				stands[k.Execution]++
			}
			if len(all) != windowMost+more || len(stands) != 2 {
				t.Errorf("%d enforcements, of %d executions", len(all), len(stands))
			}
			for id, n := range stands {
				if n > windowMost {
					t.Errorf("%s stands for %d signals", id, n)
				}
			}
		})
	}
}

// A window whose execution the store refuses has failed for its signals, and other windows close in the same round.
func TestWindowsBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.apply(fmt.Sprintf(debounced, "200ms", "1s", "last"))
		s.set(func(d *flow.Draft) bool { return d.New && string(d.Input) == `{"n":1}` })
		ids := []flow.ID{r.emitN("a", 0), r.emitN("b", 1), r.emitN("c", 2)}
		want := []string{"d ran", "d failed", "d ran"}
		for i, id := range ids {
			r.within(patience, fmt.Sprintf("signal %d is still held", i), func() bool { return r.enforced(id) != "d held" })
			if got := r.enforced(id); !strings.HasPrefix(got, want[i]) {
				r.Errorf("signal %d: %s, want %s", i, got, want[i])
			}
		}
		failed, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{State: flow.EnforcementFailed, Limit: 10})
		if err != nil || len(failed) != 1 || !strings.Contains(failed[0].Reason.Message, errPlanted.Error()) {
			r.Errorf("%+v, %v", failed, err)
		}
	})
}
