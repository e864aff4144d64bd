package engine

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// The items of a foreach get slots of the rate, too.
func TestRateOfItems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: many\ntasks:\n  each:\n    foreach: [1, 2, 3, 4]\n    action: noop\n    rate: {key: many, limit: 60, per: 1h}\n")
	r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) { return "1", nil })
	many := r.submit(Submission{Action: "many"})
	for i, want := range []flow.Place{flow.Finished, flow.Delayed, flow.Delayed, flow.Delayed} {
		r.within(patience, "the task's slot", func() bool { return r.get(r.child(many, "each", i)).Place == want })
	}
}

// With any number of servers and submitters, no more executions begin than the rate allows, and no slot is given twice.
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
