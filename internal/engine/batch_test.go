package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const batched = "kind: rule\nname: b\non: t\nbatch: {key: '${{ signal.subject }}', size: %d, wait: %s, bytes: %s}\nrun: {action: noop, input: '${{ signals.map(s, s.data.n) }}'}\n"

// A batch runs when it is full, or when its time is over, with all signals in their order, separately for each key.
func TestBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(fmt.Sprintf(batched, 3, "1h", "1MB"))
	first := r.emitN("x", 1)
	r.emitN("y", 2)
	r.clock.move(0, 30*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != "" {
		t.Errorf("before it is full: %s", got)
	}
	if got := r.whySignal(first, ""); !strings.Contains(got, `is held in window "x" of its batch, which has 1 of at most 3 signals with 7 bytes: it runs for all of them together at `) || !strings.Contains(got, "at the latest") {
		t.Error(got)
	}
	r.emitN("x", 3)
	third := r.emitN("x", 4)
	r.closes()
	if got := r.inputs("noop"); got != `[1,3,4]` {
		t.Errorf("x is full: %s", got)
	}
	if got := r.enforced(first) + ", " + r.enforced(third); got != "b ran, b folded" {
		t.Errorf("%s", got)
	}
	r.emitN("x", 5)
	r.clock.move(0, 45*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != `[1,3,4] [2]` {
		t.Errorf("the time of y is over: %s", got)
	}
}

// More simultaneous signals than a batch takes make several batches, none of them too large.
func TestBatchOverflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(fmt.Sprintf(batched, 3, "1h", "1MB"))
	var all []Emission
	for n := range 8 {
		all = append(all, Emission{Trigger: "t", Subject: "x", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
	}
	out, err := r.e.Emit(r.ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	r.closes()
	if got := r.inputs("noop"); got != `[0,1,2] [3,4,5]` {
		t.Errorf("%s", got)
	}
	if got := r.whySignal(out[7].Signal, ""); !strings.Contains(got, "has 2 of at most 3 signals with 14 bytes") {
		t.Error(got)
	}
	r.clock.move(0, 61*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != `[0,1,2] [3,4,5] [6,7]` {
		t.Errorf("%s", got)
	}
}

// A batch is bounded in bytes; a larger signal goes alone.
func TestBatchBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(strings.Replace(fmt.Sprintf(batched, 100, "1h", "100"), "s.data.n", "size(s.data.n)", 1))
	var all []Emission
	for _, n := range []int{40, 40, 40, 500, 1} {
		all = append(all, Emission{Trigger: "t", Subject: "x", Data: json.RawMessage(fmt.Sprintf(`{"n":%q}`, strings.Repeat("a", n)))})
	}
	if _, err := r.e.Emit(r.ctx, all); err != nil {
		t.Fatal(err)
	}
	r.closes()
	if got := r.inputs("noop"); got != `[40,40] [40] [500]` {
		t.Errorf("%s", got)
	}
}

// debounce with keep: all runs with all signals of its window.
func TestDebounceKeepsAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("kind: rule\nname: d\non: t\ndebounce: {key: k, quiet: 1h, at_most: 3h, keep: all}\nrun: {action: noop, input: '${{ signals.map(s, s.data.n) }}'}\n")
	first := r.emitN("x", 1)
	r.clock.move(0, 45*time.Minute, 0)
	r.emitN("y", 2)
	r.clock.move(0, 45*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != "" {
		t.Errorf("before it is quiet: %s", got)
	}
	if got := r.whySignal(first, ""); !strings.Contains(got, "of its debounce") || !strings.Contains(got, "unless another one comes before") {
		t.Error(got)
	}
	r.clock.move(0, 30*time.Minute, 0)
	r.closes()
	if got := r.inputs("noop"); got != `[1,2]` {
		t.Errorf("%s", got)
	}
}

// If a batch cannot be evaluated, it fails for all of its signals, and for no others.
func TestBatchFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(fmt.Sprintf(batched, 2, "1h", "1MB"))
	bad := r.emit(Emission{Trigger: "t", Subject: "x"}).Signal
	beside, other := r.emitN("x", 1), r.emitN("x", 2)
	r.closes()
	if got := r.enforced(bad) + ", " + r.enforced(beside) + ", " + r.enforced(other); got != "b failed input, b failed input, b held" {
		t.Error(got)
	}
}

// A window uses the version of the rule that buffered its latest signal, even if an earlier version kept only the last signal.
func TestBatchOfNewVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(strings.Replace(fmt.Sprintf(debounced, "1h", "3h", "last"), "name: d", "name: b", 1))
	r.emitN("x", 1)
	r.apply(fmt.Sprintf(batched, 10, "1h", "1MB"))
	r.emitN("x", 2)
	r.clock.move(0, 2*time.Hour, 0)
	r.closes()
	if got := r.inputs("noop"); got != `[1,2]` {
		t.Errorf("%s", got)
	}
	r.emitN("x", 3)
	r.apply(strings.Replace(fmt.Sprintf(debounced, "1h", "3h", "last"), "name: d", "name: b", 1))
	r.emitN("x", 4)
	r.clock.move(0, 4*time.Hour, 0)
	r.closes()
	if got := r.inputs("noop"); got != `[1,2] {"n":4}` {
		t.Errorf("%s", got)
	}
}

// On either store, with servers that emit and close at once, each signal is in one batch, and no batch is too large.
func TestBatchRaces(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		other := r.e
		if !r.e.opts.Exclusive {
			other = r.replica(func(o *Options) { o.Uptime = nil })
		}
		r.apply(fmt.Sprintf(batched, 7, "30ms", "1MB"))
		r.e.Settle(r.ctx)
		done := make(chan error, 4)
		const each = 60
		for i := range cap(done) {
			go func() {
				for n := range each / 3 {
					var all []Emission
					for k := range 3 {
						all = append(all, Emission{Trigger: "t", Subject: fmt.Sprint(n % 2), Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, (i*each + n*3 + k)))})
					}
					if _, err := []*Engine{r.e, other}[i%2].Emit(r.ctx, all); err != nil {
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
		r.within(patience, "something is still held", func() bool {
			held, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{State: flow.EnforcementBuffered, Limit: 1})
			if err != nil {
				r.Fatal(err)
			}
			return len(held) == 0
		})
		all, err := store.List(r.ctx, r.store, store.Filter{Action: "noop", Limit: 1000})
		if err != nil {
			r.Fatal(err)
		}
		var got []int
		for _, x := range all {
			var n []int
			if err := json.Unmarshal(r.get(x.ID).Input, &n); err != nil || len(n) > 7 || len(n) == 0 {
				r.Errorf("%s: %v, %v", x.ID, n, err)
			}
			got = append(got, n...)
		}
		slices.Sort(got)
		for i := range each * cap(done) {
			if i >= len(got) || got[i] != i {
				r.Fatalf("%d of %d signals, and number %d is not there once", len(got), each*cap(done), i)
			}
		}
	})
}

// A test of rules tells which signals would be buffered and for how many executions, and what would fail even for one signal.
func TestRulesTestOfBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 5 {
		r.emitN("x", n)
	}
	r.clock.move(0, 2*time.Hour, 0)
	r.emitN("x", 5)
	defs, err := definition.Parse("r.yaml", []byte(fmt.Sprintf(batched, 3, "1h", "1MB")))
	if err != nil {
		t.Fatal(err)
	}
	past, err := r.e.TestRules(r.ctx, defs, time.Time{})
	if err != nil || past[0].Held != 6 || past[0].Runs != 3 || past[0].Ran != 0 || past[0].Failed != 0 {
		t.Errorf("%+v %v", past, err)
	}
	r.emit(Emission{Trigger: "t", Subject: "x"})
	past, err = r.e.TestRules(r.ctx, defs, time.Time{})
	if err != nil || past[0].Held != 6 || past[0].Failed != 1 {
		t.Errorf("%+v %v", past, err)
	}
}
