package storetest

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// violations plants damage that a store accepts, because it persists decisions and does not make them, and checks that Check finds it. The
// numbers are those in docs/invariants.md.
func violations(b *bench) {
	b.clean()
	plant := func(invariant int, what string, drafts ...*flow.Draft) {
		b.Helper()
		b.apply(drafts...)
		var of []flow.ID
		for _, d := range drafts {
			of = append(of, d.ID, d.Parent)
		}
		b.broken(invariant, what, of...)
	}
	scheduled := func(change ...func(*flow.Request)) *flow.Draft {
		d := b.submit(change...)
		must(b, d.Schedule(int64(b.made), b.now))
		return d
	}
	event := func(d *flow.Draft, seq int64, attempt int, typ flow.EventType) {
		d.Events = append(d.Events, flow.Event{Seq: seq, Attempt: attempt, Type: typ, At: b.now})
		d.NextSeq = seq + 1
	}

	d := scheduled()
	event(d, d.NextSeq, 1, flow.EvCompleted)
	plant(1, "a completion of what never ran", d)

	d = scheduled()
	d.Place, d.Stage = flow.Held, flow.Provisioning
	plant(1, "a stage that no event led to", d)

	d = b.submit()
	d.Place, d.Stage, d.Outcome = flow.Finished, flow.Completed, &flow.Outcome{}
	plant(2, "an end without a time", d)

	d = scheduled()
	must(b, d.Claim(flow.ID{}, "nobody", b.now))
	plant(3, "held by nobody", d)

	d = scheduled()
	event(d, d.NextSeq, 3, flow.EvProvisioning)
	plant(4, "an event of an attempt that is not", d)

	d = scheduled()
	event(d, d.NextSeq+1, 1, flow.EvProvisioning)
	plant(6, "a hole in the history", d)

	d = scheduled()
	d.NextSeq += 3
	plant(6, "a history that is too short", d)

	plant(12, "a key with more holders than its limit", scheduled(withKey("k", 2)), scheduled(withKey("k", 1)), scheduled(withKey("k", 2)))

	slotted := func(after time.Duration) *flow.Draft {
		d := b.submit(func(r *flow.Request) { r.Rate = flow.Rate{Key: "r", Limit: 2, Per: time.Minute, Burst: 1} })
		d.SetSlot(b.now.Add(after), b.now)
		return d
	}
	plant(52, "more slots of a rate than it allows", slotted(0), slotted(time.Second), slotted(40*time.Second), slotted(59*time.Second))
	plant(52, "begun without a slot of its rate", scheduled(func(r *flow.Request) { r.Rate = flow.Rate{Key: "other", Limit: 2, Per: time.Minute, Burst: 1} }))

	wf := b.workflow()
	plant(19, "items with a hole between their indices", b.submit(under(wf, "t", 0)), b.submit(under(wf, "t", 2)))

	wf = b.workflow()
	child := scheduled(under(wf, "t", 0))
	b.apply(child)
	over := b.load(wf)
	must(b, over.Finish(flow.Completed, flow.Outcome{}, b.now, 0))
	plant(20, "a workflow that has ended before its child", over)

	d = b.submit(attempts(1))
	event(d, 2, 2, flow.EvRequested)
	d.Attempt = 2
	plant(22, "an attempt too many", d)

	d = scheduled(func(r *flow.Request) { r.QueueTimeout = time.Minute })
	must(b, d.Cancel(flow.TimedOut, flow.CodeQueueTimeout, "too early", b.now.Add(time.Second)))
	plant(24, "timed out before the deadline", d)

	d = scheduled()
	d.Inbox = 3
	plant(33, "kept events that do not exist", d)

	d = scheduled()
	d.Events[1].At = b.now.Add(-time.Microsecond)
	plant(37, "an event from before the one before it", d)

	for what, pieces := range map[string][]store.InputPiece{
		"input with a hole":            {{Number: 1, Data: []byte("ab")}, {Number: 2, Offset: 3, Data: []byte("c")}},
		"input with an overlap":        {{Number: 1, Data: []byte("ab")}, {Number: 2, Offset: 1, Data: []byte("c")}},
		"input that lacks its start":   {{Number: 1, Offset: 1, Data: []byte("ab")}},
		"input whose pieces lack one":  {{Number: 1, Data: []byte("ab")}, {Number: 3, Offset: 2, Data: []byte("c")}},
		"input that goes on after all": {{Number: 1, Data: []byte("ab"), Last: true}, {Number: 2, Offset: 2, Data: []byte("c")}},
	} {
		d = scheduled()
		b.apply(d)
		for i := range pieces {
			pieces[i].Execution = d.ID
		}
		b.delta(store.Delta{Input: pieces})
		plant(33, what, b.load(d.ID))
	}
}
