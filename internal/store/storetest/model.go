package storetest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// known is the model's state of one execution.
type known struct {
	x      *flow.Execution
	events []flow.Event
	inbox  []flow.Event
}

// modelled is a store and the model with which it must agree.
type modelled struct {
	*bench
	rt     *rapid.T
	queues []string
	keys   []string
	order  []flow.ID
	all    map[flow.ID]*known
	met    map[flow.ID]bool             // changed since the last comparison
	kept   map[flow.ID][]store.Reusable // by rerun
	ticket int64
}

// model takes random decisions and compares the store with a map after each.
func model(b *bench) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		// A store is not a pure function: under the race detector the default of a hundred runs takes most of a minute.
		must(b, flag.Set(f.Name, "30"))
	}
	run := 0
	rapid.Check(b.tb, func(rt *rapid.T) {
		run++ // its own queues and keys, because the store is not emptied in between
		one := *b
		one.tester, one.now = rt, epoch
		defer func() { b.made = one.made }() // also after a failed run, so that rapid can repeat the failure
		m := &modelled{bench: &one, rt: rt, all: make(map[flow.ID]*known), met: make(map[flow.ID]bool), kept: make(map[flow.ID][]store.Reusable),
			queues: []string{fmt.Sprint("q", run), fmt.Sprint("r", run)}, keys: []string{"", fmt.Sprint("k", run), fmt.Sprint("l", run)}}
		for i := range 2 {
			m.completeOne(i)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"submit": m.submitSome, "admit": m.admit, "claim": m.claim, "report": m.report, "cancel": m.cancel,
			"lose": m.lose, "hand back": m.handBack, "stale": m.stale, "roll back": m.rollBack,
			"rerun": m.rerun, "reuse": m.reuse, "pause": m.pause, "resume": m.resume, "put aside": m.putAside, "take up": m.takeUp, "": func(*rapid.T) { m.compare(slices.Collect(maps.Keys(m.met))) },
		})
		m.compare(m.order)
		m.endAll()
	})
}

// completeOne makes a completed execution with an output, so that there is something to rerun from the first draw on.
func (m *modelled) completeOne(n int) {
	d := m.submit(onQueue(m.queues[0]), func(r *flow.Request) { r.Input = raw("%d", n) })
	for _, decide := range []func() error{
		func() error { m.ticket++; return d.Schedule(m.ticket, m.now) },
		func() error { return d.Claim(flow.ID{1}, "w", m.now) },
		func() error {
			d.Report(d.Owner, flow.Report{Execution: d.ID, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: m.now},
				{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: m.now, Outcome: &flow.Outcome{Output: raw(`{"n": %d}`, n)}}}}, nil, nil, m.now, 0)
			return nil
		},
	} {
		must(m.bench, decide())
		m.commit(d)
		d = m.load(d.ID)
	}
}

// pick draws an execution that fits, or skips the step.
func (m *modelled) pick(fits func(*flow.Execution) bool) *flow.Draft {
	var some []flow.ID
	for _, id := range m.order {
		if fits(m.all[id].x) {
			some = append(some, id)
		}
	}
	if len(some) == 0 {
		m.rt.Skip("none")
	}
	id := rapid.SampledFrom(some).Draw(m.rt, "execution")
	m.met[id] = true
	return m.load(id)
}

// commit writes a decision to the store and to the model.
func (m *modelled) commit(drafts ...*flow.Draft) {
	m.apply(drafts...)
	m.learn(drafts...)
}

func (m *modelled) learn(drafts ...*flow.Draft) {
	for _, d := range drafts {
		if d.New {
			m.order = append(m.order, d.ID)
			m.all[d.ID] = &known{}
		}
		m.met[d.ID] = true
		k := m.all[d.ID]
		x := *d.Execution
		k.x = &x
		k.events = append(k.events, d.Events...)
		k.inbox = slices.DeleteFunc(k.inbox, func(e flow.Event) bool { return e.Seq < d.InboxBelow })
		k.inbox = append(k.inbox, d.InboxAdd...)
		slices.SortFunc(k.inbox, func(a, b flow.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	}
}

func (m *modelled) tick() time.Time {
	return m.later(time.Duration(rapid.IntRange(0, 5_000_000).Draw(m.rt, "µs")) * time.Microsecond)
}

func (m *modelled) submitSome(rt *rapid.T) {
	var drafts []*flow.Draft
	for range rapid.IntRange(1, 4).Draw(rt, "executions") {
		r := m.request(onQueue(rapid.SampledFrom(m.queues).Draw(rt, "queue")), priority(rapid.IntRange(-1, 1).Draw(rt, "priority")),
			attempts(rapid.IntRange(0, 3).Draw(rt, "attempts")))
		if r.Key = rapid.SampledFrom(m.keys).Draw(rt, "key"); r.Key != "" {
			r.KeyLimit = 1000
		}
		r.TotalTimeout = time.Duration(rapid.IntRange(0, 2).Draw(rt, "total timeout")) * time.Minute
		r.QueueTimeout = time.Duration(rapid.IntRange(0, 2).Draw(rt, "queue timeout")) * time.Second
		r.NotBefore = m.now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(rt, "delay")) * time.Second)
		r.Input = raw("%d", m.made)
		drafts = append(drafts, flow.Submit(m.id(), r))
	}
	m.commit(drafts...)
}

// admit moves an execution into its queue, or into its key's wait list.
func (m *modelled) admit(rt *rapid.T) {
	d := m.pick(func(x *flow.Execution) bool {
		return (x.Stage == flow.Requested || x.TakenOut()) && x.Aside == nil && !x.StandsStill()
	})
	m.ticket++
	if d.Key != "" && d.Place != flow.Waiting && rapid.Bool().Draw(rt, "wait") {
		must(m.bench, d.Wait(m.ticket, m.tick()))
	} else {
		must(m.bench, d.Schedule(m.ticket, m.tick()))
	}
	m.commit(d)
}

func (m *modelled) claim(rt *rapid.T) {
	got := m.take(rapid.IntRange(1, 3).Draw(rt, "slots"), m.queues...)
	session := flow.ID{byte(rapid.IntRange(1, 2).Draw(rt, "session"))}
	var drafts []*flow.Draft
	for _, x := range got {
		d := flow.Load(x)
		must(m.bench, d.Claim(session, "w", m.tick()))
		drafts = append(drafts, d)
	}
	m.commit(drafts...)
}

// held reports whether a worker holds an execution.
func held(x *flow.Execution) bool { return x.Place == flow.Held && x.Kind != flow.KindWorkflow }

// report lets an owner report an event: in order, after a gap, or the end.
func (m *modelled) report(rt *rapid.T) {
	d := m.pick(held)
	types := []flow.EventType{flow.EvRunning}
	if d.Stage == flow.Running {
		types = []flow.EventType{flow.EvProgress, flow.EvCompleted, flow.EvFailed, flow.EvCancelled}
	}
	seq := d.NextSeq + int64(rapid.IntRange(0, 2).Draw(rt, "gap"))
	e := flow.Event{Seq: seq, Attempt: d.Attempt, Type: rapid.SampledFrom(types).Draw(rt, "type"), At: m.tick(), Data: raw("%d", seq)}
	if e.Type == flow.EvCompleted {
		e.Outcome = &flow.Outcome{Output: raw("%d", seq)}
	}
	stash := slices.Clone(m.all[d.ID].inbox)
	d.Report(d.Owner, flow.Report{Execution: d.ID, Attempt: d.Attempt, Events: []flow.Event{e}}, nil, stash, m.now, 0.5)
	if d.Changed() {
		m.commit(d)
	}
}

func (m *modelled) cancel(*rapid.T) {
	d := m.pick(func(x *flow.Execution) bool { return !x.Stage.Terminal() })
	must(m.bench, d.Cancel(flow.Cancelled, flow.CodeCancelled, "drawn", m.tick()))
	m.commit(d)
}

func (m *modelled) lose(*rapid.T) {
	d := m.pick(held)
	must(m.bench, d.Lose("drawn", m.tick(), 0.5))
	m.commit(d)
}

func (m *modelled) handBack(*rapid.T) {
	d := m.pick(held)
	must(m.bench, d.HandBack("drawn", m.tick()))
	m.commit(d)
}

// stale makes a decision on an outdated state.
func (m *modelled) stale(*rapid.T) {
	old := m.pick(held)
	now := m.load(old.ID)
	must(m.bench, now.Lose("drawn", m.tick(), 0.5))
	m.commit(now)
	must(m.bench, old.Lose("drawn", m.now, 0.5))
	wantErr(m.bench, "a stale decision", m.try(store.Delta{Drafts: []*flow.Draft{old}}), store.ErrConflict)
}

func (m *modelled) rollBack(*rapid.T) {
	d := m.pick(func(x *flow.Execution) bool { return !x.Stage.Terminal() })
	must(m.bench, d.Cancel(flow.Cancelled, flow.CodeCancelled, "drawn", m.tick()))
	stop := errors.New("stop")
	err := m.s.Update(m.ctx(), func(ctx context.Context, t store.Tx) error {
		return errors.Join(t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}), stop)
	})
	wantErr(m.bench, "update", err, stop)
}

const rerunTask = "each"

// rerun submits a workflow that reuses outcomes of completed executions, each of which is copied.
func (m *modelled) rerun(rt *rapid.T) {
	completed := func(x *flow.Execution) bool { return x.Stage == flow.Completed }
	d := m.submit(asWorkflow, onQueue(m.queues[0]), func(r *flow.Request) { r.RerunOf = m.pick(completed).ID })
	var reuses []store.Reuse
	for index := range rapid.IntRange(0, 3).Draw(rt, "items") {
		from := m.pick(completed)
		of := from.ID
		if !from.ReusedOf.IsZero() {
			of = from.ReusedOf
		}
		hash := [32]byte{byte(index + 1)}
		reuses = append(reuses, store.Reuse{Workflow: d.ID, Task: rerunTask, Index: index, From: from.ID, Of: of, Hash: hash})
		m.kept[d.ID] = append(m.kept[d.ID], store.Reusable{Index: index, Of: of, Hash: hash, Output: m.all[from.ID].x.Outcome.Output})
	}
	m.delta(store.Delta{Drafts: []*flow.Draft{d}, Workflows: store.WorkflowRows{Reuses: reuses}})
	m.learn(d)
}

// reuse ends an execution with an outcome stored for a rerun.
func (m *modelled) reuse(rt *rapid.T) {
	d := m.pick(func(x *flow.Execution) bool { return !x.Stage.Terminal() && len(m.kept[x.ID]) > 0 })
	kept := rapid.SampledFrom(m.kept[d.ID]).Draw(rt, "item")
	one := m.submit(onQueue(m.queues[0]), func(r *flow.Request) { r.ReusedOf = kept.Of })
	must(m.bench, one.Reuse(kept.Output, m.tick()))
	m.commit(one)
}

func (m *modelled) pause(rt *rapid.T) {
	stops := rapid.Bool().Draw(rt, "timers stop")
	d := m.pick(func(x *flow.Execution) bool {
		return x.Kind == flow.KindWorkflow && !x.Stage.Terminal() || stops && x.CanStandStill()
	})
	now := m.tick()
	until := now.Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "s")) * time.Second)
	must(m.bench, d.Pause(flow.Pause{Until: until, By: "ann", Reason: "drawn", Stops: stops}, now))
	m.commit(d)
}

func (m *modelled) resume(*rapid.T) {
	d := m.pick(func(x *flow.Execution) bool { return x.Pause != nil })
	must(m.bench, d.Resume("bob", "drawn", m.tick()))
	m.commit(d)
}

func (m *modelled) putAside(*rapid.T) {
	d := m.pick(func(x *flow.Execution) bool { return !x.Stage.Terminal() })
	d.PutAside("drawn", m.tick())
	m.commit(d)
}

// takeUp continues an execution that was put aside. An execution that was in its queue goes back there, or waits for its key.
func (m *modelled) takeUp(rt *rapid.T) {
	d := m.pick(func(x *flow.Execution) bool { return x.Aside != nil })
	d.ClearAside()
	if d.TakenOut() {
		m.ticket++
		if d.Key != "" && rapid.Bool().Draw(rt, "wait") {
			must(m.bench, d.Wait(m.ticket, m.tick()))
		} else {
			must(m.bench, d.Schedule(m.ticket, m.tick()))
		}
	}
	m.commit(d)
}

// compare compares a store's answers with the model: about some executions, and about every queue, key and deadline.
func (m *modelled) compare(some []flow.ID) {
	clear(m.met)
	for _, id := range some {
		k := m.all[id]
		equal(m.bench, "execution", m.get(id), k.x)
		equal(m.bench, "history", m.events(id, 0, 1000), stripped(k.events))
		want := m.kept[id]
		if k.x.Stage.Terminal() {
			want = nil
		}
		equal(m.bench, "what is to be reused", inTx(m.bench, func(ctx context.Context, t store.Tx) ([]store.Reusable, error) {
			return t.Reusable(ctx, id, rerunTask, 0, 100, 1<<20)
		}), want)
		equal(m.bench, "kept events", inTx(m.bench, func(ctx context.Context, t store.Tx) ([]flow.Event, error) { return t.Inbox(ctx, id) }), k.inbox)
	}
	use := make(map[string]store.KeyUse)
	lines := make(map[string][]*flow.Execution)
	var ready, due []*flow.Execution
	for _, id := range m.order {
		k := m.all[id]
		u := use[k.x.Key]
		switch {
		case k.x.Place.HoldsKey():
			u.Holders++
		case k.x.Place == flow.Waiting:
			u.Waiting++
			lines[k.x.Key] = append(lines[k.x.Key], k.x)
		}
		use[k.x.Key] = u
		if k.x.Place == flow.Ready {
			ready = append(ready, k.x)
		}
		if w := k.x.Wake(); !w.IsZero() && !w.After(m.now) {
			due = append(due, k.x)
		}
	}
	inTurn := func(a, b *flow.Execution) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Ticket, b.Ticket))
	}
	slices.SortFunc(ready, inTurn)
	equal(m.bench, "queues", ids(m.take(len(m.order)+1, m.queues...)), ids(ready))
	delete(use, "")
	got := inTx(m.bench, func(ctx context.Context, t store.Tx) (map[string]store.KeyUse, error) {
		return t.LockKeys(ctx, slices.Collect(maps.Keys(use)))
	})
	equal(m.bench, "keys", got, use)
	for key, line := range lines {
		slices.SortFunc(line, inTurn)
		got := inTx(m.bench, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) { return t.WaitList(ctx, key, 1000) })
		equal(m.bench, "line", ids(got), ids(line))
	}
	woken := inTx(m.bench, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
		all, _, err := t.Due(ctx, m.now, 1_000_000)
		return slices.DeleteFunc(all, func(x *flow.Execution) bool { return m.all[x.ID] == nil }), err
	})
	equal(m.bench, "due", asSet(ids(woken)), asSet(ids(due)))
}

// endAll ends the remaining executions, so that they are not due in later runs.
func (m *modelled) endAll() {
	for _, id := range m.order {
		d := m.load(id)
		if d.Stage.Terminal() {
			continue
		}
		must(m.bench, d.Cancel(flow.Cancelled, flow.CodeCancelled, "the run is over", m.now))
		if d.Kind == flow.KindWorkflow && d.Place == flow.Held {
			must(m.bench, d.Finish(flow.Cancelled, flow.Outcome{Error: &flow.Error{Code: flow.CodeCancelled, Message: "the run is over"}}, m.now, 0))
		}
		if held(d.Execution) {
			must(m.bench, d.Lose("the run is over", m.now, 0))
		}
		m.commit(d)
	}
}

// stripped returns events in the form in which the history stores them.
func stripped(events []flow.Event) []flow.Event {
	out := slices.Clone(events)
	for i := range out {
		out[i].Outcome = nil
	}
	return out
}
