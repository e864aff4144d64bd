package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const debounced = "kind: rule\nname: d\non: t\nif: default(signal.data.skip, false) == false\ndebounce: {key: '${{ signal.subject }}', quiet: %s, at_most: %s, keep: %s}\nrun: {action: noop, input: {n: '${{ signal.data.n }}'}}\n"

// closes lets the windows close that are due.
func (r *rig) closes() {
	r.Helper()
	for {
		if pause, err := r.e.closeDue(r.ctx); err != nil {
			r.Fatal(err)
		} else if pause > 0 {
			return
		}
	}
}

// inputs are the inputs of all executions of an action, sorted by their creation.
func (r *rig) inputs(action string) string {
	r.Helper()
	all, err := r.store.List(r.ctx, store.Filter{Action: action, Limit: 100})
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

// One execution stands for all signals until none has come for a while, each key by itself.
func TestDebounce(t *testing.T) {
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

// A window closes in the end though signals never stop to come, and may be for the first of them.
func TestDebounceAtMost(t *testing.T) {
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

// On either store, and by servers that close windows at once, each signal is enforced once.
func TestDebounceRaces(t *testing.T) {
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
		r.within(10*time.Second, "something is still held", func() bool {
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
		ran, err := r.store.List(r.ctx, store.Filter{Limit: 1000})
		if err != nil || len(ran) != counts["ran"] || counts["ran"]+counts["folded"] != each*cap(done) || counts["ran"] < 3 {
			r.Errorf("%d executions, %v, %v", len(ran), counts, err)
		}
	})
}
