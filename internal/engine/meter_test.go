package engine

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

const rated = `
name: mail
action: noop
input: {type: object, properties: {to: {type: string}}}
rate: {key: "mail:${{ input.to }}", limit: 6, per: 1h, burst: 2}
---
name: drop
action: noop
rate: {key: drops, limit: 1, per: 1h, over: drop}
---
name: many
tasks:
  each:
    foreach: [1, 2, 3, 4]
    action: noop
    rate: {key: many, limit: 60, per: 1h}
---
name: whole
rate: {key: whole, limit: 1, per: 1h}
concurrency: {key: whole, limit: 1}
tasks: {one: {action: noop}}
`

// to submits a mail.
func (r *rig) mail(to string) *flow.Execution {
	r.Helper()
	return r.get(r.submit(Submission{Action: "mail", Input: []byte(fmt.Sprintf(`{"to":%q}`, to))}))
}

// A rate lets a burst begin at once and spaces the others; what waits says so, begins at its slot, and takes no other for its retries.
func TestRate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(rated)
	var slots []time.Duration
	var last *flow.Execution
	first := r.mail("a")
	for range 4 {
		last = r.mail("a")
		slots = append(slots, last.SlotAt.Sub(first.SlotAt).Round(time.Minute))
	}
	if got := fmt.Sprint(slots); got != "[0s 10m0s 20m0s 30m0s]" {
		t.Errorf("slots after %s", got)
	}
	if first.Place != flow.Ready || last.Place != flow.Delayed || !last.WakeAt.Equal(last.SlotAt) {
		t.Errorf("the first is %s, the last %s until %s", first.Place, last.Place, last.WakeAt)
	}
	if other := r.mail("b"); other.Place != flow.Ready {
		t.Errorf("an execution of another key is %s", other.Place)
	}
	r.why(last.ID, `waits for the rate of key "mail:a" until`, "6 per 1h0m0s, burst 2")
	w := r.worker()
	w.take(10)
	r.pass(9 * time.Minute)
	r.decideDue()
	if x := r.get(last.ID); x.Place != flow.Delayed {
		t.Errorf("it is %s before its slot", x.Place)
	}
	r.pass(22 * time.Minute)
	r.decideDue()
	work := w.take(10)
	if len(work) != 3 {
		t.Fatalf("%d began by their slots, want 3", len(work))
	}
	slot := r.get(work[0].Execution).SlotAt
	w.complete(work[0], "1")
	if x := r.get(work[0].Execution); !x.Stage.Terminal() || !x.SlotAt.Equal(slot) {
		t.Errorf("ended as %s with the slot %s, was %s", x.Stage, x.SlotAt, slot)
	}
	retry := r.submit(Submission{Action: "mail", Input: []byte(`{"to":"retry"}`), Retry: &flow.Retry{MaxAttempts: 2, Delay: time.Second}})
	a := w.take(1)[0]
	w.fail(a, "boom")
	r.pass(2 * time.Second)
	r.decideDue()
	if x := r.get(retry); x.Attempt != 2 || x.Place != flow.Ready || slot.IsZero() {
		t.Errorf("the retry: attempt %d, %s", x.Attempt, x.Place)
	}
	r.verify()
}

func TestRateOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(rated)
	if x := r.get(r.submit(Submission{Action: "drop"})); x.Place != flow.Ready {
		t.Errorf("the first: %s", x.Place)
	}
	x := r.get(r.submit(Submission{Action: "drop"}))
	if x.Stage != flow.Cancelled || x.Outcome.Error.Code != flow.CodeRateExceeded || !strings.Contains(x.Outcome.Error.Message, "1 per 1h0m0s") {
		t.Errorf("the second: %s %+v", x.Stage, x.Outcome)
	}
	r.pass(time.Hour)
	if x := r.get(r.submit(Submission{Action: "drop"})); x.Place != flow.Ready {
		t.Errorf("an hour later: %s, though what was dropped takes no slot", x.Place)
	}
	later := r.get(r.submit(Submission{Action: "mail", Input: []byte(`{"to":"c"}`), NotBefore: r.clock.now().Add(time.Hour)}))
	if !later.SlotAt.IsZero() {
		t.Errorf("what is not due has the slot %s", later.SlotAt)
	}

	r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) { return "1", nil })
	many := r.submit(Submission{Action: "many"})
	for i, want := range []flow.Place{flow.Finished, flow.Delayed, flow.Delayed, flow.Delayed} {
		r.within(patience, "the task's slot", func() bool { return r.get(r.child(many, "each", i)).Place == want })
	}
	one := r.submit(Submission{Action: "whole"})
	r.ended(one)
	if x := r.get(r.submit(Submission{Action: "whole"})); x.Place != flow.Delayed {
		t.Errorf("a workflow over its rate is %s", x.Place)
	}
}

// However many servers and submitters there are, no more begin than the rate allows, and no slot is given twice.
func TestRateReplicas(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: fast\naction: noop\nrate: {key: k, limit: 100, per: 100s, burst: 3}\n")
		other := r.replica(func(o *Options) { o.Uptime = nil })
		var wg sync.WaitGroup
		ids := make(chan flow.ID, 60)
		for i := range 6 {
			e := []*Engine{r.e, other}[i%2]
			wg.Go(func() {
				for range 10 {
					all, err := e.Submit(r.ctx, []Submission{{Action: "fast"}})
					if err != nil || all[0].Err != nil {
						r.Errorf("%v %+v", err, all)
						return
					}
					ids <- all[0].Execution
				}
			})
		}
		wg.Wait()
		close(ids)
		seen := map[time.Time]int{}
		var least, most time.Time
		for id := range ids {
			at := r.get(id).SlotAt
			seen[at]++
			if least.IsZero() || at.Before(least) {
				least = at
			}
			if at.After(most) {
				most = at
			}
		}
		burst := 0
		for at, n := range seen {
			if n > 1 {
				burst += n - 1
			}
			_ = at
		}
		if span := most.Sub(least); span < 56*time.Second || burst > 3 {
			r.Errorf("60 slots within %s, %d of them shared", span, burst)
		}
		r.verify()
	})
}

func TestDropMeters(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: quick\naction: noop\nrate: {key: 'k${{ input.n }}', limit: 1000, per: 1s}\n---\nname: slow\naction: noop\nrate: {key: slow, limit: 1, per: 24h}\n")
		for n := range 3 {
			r.submit(Submission{Action: "quick", Input: []byte(fmt.Sprintf(`{"n":%d}`, n))})
		}
		r.submit(Submission{Action: "slow"})
		if x := r.get(r.submit(Submission{Action: "slow"})); x.Place != flow.Delayed {
			r.Errorf("it is %s", x.Place)
		}
		if _, err := r.e.dropOld(r.ctx, store.OldMeters); err != nil {
			r.Fatal(err)
		}
		if x := r.get(r.submit(Submission{Action: "slow"})); x.Place != flow.Delayed || x.SlotAt.Before(time.Now().Add(40*time.Hour)) {
			r.Errorf("after meters were dropped it is %s until %s", x.Place, x.SlotAt)
		}
	})
}
