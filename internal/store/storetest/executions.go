package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// full returns a request that uses every field.
func (b *bench) full(parent flow.ID) flow.Request {
	return flow.Request{
		Parent: parent, ParentAttempt: 1, Task: "grade", Index: 0, Depth: 2,
		Action: "python-tests", Version: 7, Kind: flow.KindCode, Queue: "gpu", Priority: -3,
		Key: "customer/acme", KeyLimit: 5, WhenFull: flow.WhenFullCancelOldest,
		Settings: flow.Settings{Timeout: 3 * time.Second, QueueTimeout: time.Minute, TotalTimeout: time.Hour},
		Retry: flow.Retry{MaxAttempts: 4, Backoff: flow.Constant, Delay: time.Second, MaxDelay: time.Minute, Jitter: 0.25,
			On: []string{"oom", "exit:3"}},
		Input: raw(`{"a": [1, 2.5, "ü", null]}`), With: raw(`{"code":"print(1)"}`),
		Labels: map[string]string{"team": "blue", "empty": "", "sign": "a=b"}, IdempotencyKey: "once", Traceparent: "00-1-2-01", Signal: b.id(), Rules: []string{"a", "b"},
		Rate: flow.Rate{Key: "mails", Limit: 6, Per: time.Minute, Burst: 2, Over: flow.OverDrop}, Fair: flow.Fair{By: "ada", Weight: 3},
		CreatedAt: b.now, NotBefore: b.now.Add(time.Minute), RerunOf: b.id(), Alias: "stable", Rerun: &flow.Rerun{First: b.id(),
			Only: []string{"grade[1]"}, LeftOut: []string{"mail", "tidy"},
			Beneath: []flow.Beneath{{Path: "deploy[0]", Of: b.id(), First: b.id(), Version: 3, Work: [32]byte{1, 2}, Only: []string{"verify[2]"}, LeftOut: []string{"tidy"}},
				{Path: "deploy[0]/check[1]", Of: b.id(), First: b.id(), Outputs: []flow.OutputOverride{{Task: "ping", Index: 1, Output: raw(`{"v": 2}`)}}, OverriddenBy: "ada"}},
			KeptWith: b.id(), KeptAs: "outer[1]", RetryOf: b.id(),
			OverriddenBy: "ada", Outputs: []flow.OutputOverride{{Task: "fetch", Index: 2, Output: raw(`{"v": 1}`)}, {Task: "each", Output: raw(`null`)}}},
	}
}

// bare returns an execution in the form in which it is loaded without its payload.
func bare(x *flow.Execution) *flow.Execution {
	y := *x
	y.Input, y.With, y.Outcome = nil, nil, nil
	return &y
}

// roundTrip checks that every field comes back as it was written, in every stage.
func roundTrip(b *bench) {
	wf := b.submit(asWorkflow)
	must(b, wf.Schedule(1, b.now))
	d := flow.Submit(b.id(), b.full(wf.ID))
	b.apply(wf, d)
	see := func(what string, want *flow.Execution) {
		b.Helper()
		want = &flow.Execution{ID: want.ID, Request: want.Request, State: want.State, Outcome: want.Outcome}
		equal(b, what+": get", b.get(want.ID), want)
		for _, p := range []store.Payload{store.WithPayload, store.WithoutPayload} {
			got := inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
				return t.Lock(ctx, []flow.ID{want.ID}, p)
			})
			w := want
			if !p {
				w = bare(want)
			}
			equal(b, what+": lock", got, []*flow.Execution{w})
		}
		listed, err := store.List(b.ctx(), b.s, store.Filter{Workflow: want.Parent, Limit: 10})
		must(b, err)
		w := bare(want)
		if want.Outcome != nil {
			w.Outcome = &flow.Outcome{Error: want.Outcome.Error}
		}
		equal(b, what+": list", listed, []*flow.Execution{w})
	}
	see("requested", d.Execution)

	d = b.load(d.ID)
	must(b, d.Wait(17, b.later(2*time.Minute)))
	b.apply(d)
	see("waiting", d.Execution)

	d = b.load(d.ID)
	must(b, d.Schedule(18, b.later(time.Second)))
	b.apply(d)
	see("ready", d.Execution)

	d = b.load(d.ID)
	owner := flow.ID{15: 1}
	must(b, d.Claim(owner, "w1", b.later(time.Millisecond)))
	b.apply(d)
	see("claimed", d.Execution)

	d = b.load(d.ID)
	rc := d.Report(owner, flow.Report{Execution: d.ID, Attempt: 1, Events: []flow.Event{
		{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now}, {Seq: d.NextSeq + 2, Attempt: 1, Type: flow.EvProgress, At: b.now},
	}}, nil, nil, b.later(time.Microsecond), 0)
	if rc.Verdict != flow.Applied || d.Inbox != 1 {
		b.Fatalf("report: %+v", rc)
	}
	b.apply(d)
	see("running with a gap", d.Execution)

	d = b.load(d.ID)
	must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "a user asked", b.later(time.Second)))
	b.apply(d)
	see("ordered to end", d.Execution)

	d = b.load(d.ID)
	details := raw(`{"exit_code": 3, "files": ["a"]}`)
	rc = d.Report(owner, flow.Report{Execution: d.ID, Attempt: 1, Events: []flow.Event{
		{Seq: d.NextSeq, Attempt: 1, Type: flow.EvCancelled, At: b.now,
			Outcome: &flow.Outcome{Output: raw(`{"stdout":"x"}`), Error: &flow.Error{Code: "cancelled", Message: "it is gone", Details: details}}},
	}}, nil, nil, b.later(time.Second), 0)
	if rc.Verdict != flow.Applied || d.Place != flow.Finished {
		b.Fatalf("report: %+v", rc)
	}
	b.apply(d)
	see("cancelled", d.Execution)
}

// text checks that texts of users come back unchanged, or are refused as a whole with an error about the data.
func text(b *bench) {
	for _, s := range []string{"", "ü 日本語 \U0001F980", "a'b\"c\\d;--", "line\nline\r\n\ttab", "\x00", "a\x00b", "\xff\xfe", strings.Repeat("long ", 5000)} {
		d := b.submit(func(r *flow.Request) {
			r.Labels = map[string]string{"label": s}
			r.Traceparent = s
			r.Key, r.KeyLimit = s, 1
			r.Input = []byte(`"` + s + `"`)
		})
		err := b.try(store.Delta{Drafts: []*flow.Draft{d}})
		if err == nil {
			equal(b, "text", b.get(d.ID), d.Execution)
			continue
		}
		// A store may be unable to store such a text. Then it returns an error, and stores none of it.
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
			b.Errorf("%.10q was refused with %v: want an error about the data", s, err)
		}
		if s != "" && utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
			b.Errorf("%.10q was refused: %v", s, err)
		}
		_, err = b.s.Get(b.ctx(), d.ID)
		wantErr(b, "get what was refused", err, store.ErrNotFound)
	}
}

// large checks payloads that are larger than any page.
func large(b *bench) {
	big := raw(`"%s"`, strings.Repeat("0123456789", 300_000))
	id := b.claimed(flow.ID{1}, func(r *flow.Request) { r.Input, r.With = big, big[:1000] })
	small := b.claimed(flow.ID{1}, func(r *flow.Request) { r.Input = raw(`1`) })
	d := b.load(id)
	d.Report(flow.ID{1}, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{
		{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
		{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvProgress, At: b.now, Data: big},
		{Seq: d.NextSeq + 2, Attempt: 1, Type: flow.EvCompleted, At: b.now, Outcome: &flow.Outcome{Output: big}},
	}}, nil, nil, b.now, 0)
	b.apply(d)
	equal(b, "large", b.get(id), d.Execution)
	if got := b.get(small); string(got.Input) != "1" {
		b.Errorf("beside a large one, a small input is %.20q", got.Input)
	}
	events, err := b.s.Events(b.ctx(), id, 0, 100)
	must(b, err)
	if len(events) != len(d.Events)+3 || string(events[4].Data) != string(big) {
		b.Errorf("%d events; want %d with the large one whole", len(events), len(d.Events)+3)
	}
}

func lock(b *bench) {
	one, two := b.ready(1), b.finished()
	got := inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
		return t.Lock(ctx, []flow.ID{two, b.id(), one, two, one}, store.WithPayload)
	})
	equal(b, "lock with repeats and an unknown id", asSet(ids(got)), asSet([]flow.ID{one, two}))
	many := []flow.ID{b.id()}
	for i := range 50 {
		many = append(many, b.ready(int64(10+i)), one)
	}
	got = inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
		return t.Lock(ctx, many, store.WithoutPayload)
	})
	if len(got) != 51 {
		b.Errorf("locking 50 executions and one more that is named 50 times gave %d, want 51", len(got))
	}
	got = inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
		return t.Lock(ctx, nil, store.WithPayload)
	})
	equal(b, "lock nothing", len(got), 0)
	_, err := b.s.Get(b.ctx(), b.id())
	wantErr(b, "get an unknown id", err, store.ErrNotFound)
}

// apply checks that a transaction sees its own writes, and that no other transaction does before the commit.
func apply(b *bench) {
	d := b.submit()
	must(b, d.Schedule(1, b.now))
	b.update(func(ctx context.Context, t store.Tx) error {
		must(b, t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}))
		_, err := b.s.Get(b.ctx(), d.ID) // with a context other than the transaction's
		wantErr(b, "get before the commit", err, store.ErrNotFound)
		got, err := t.Take(ctx, []string{"default"}, 10)
		must(b, err)
		equal(b, "take what the same transaction wrote", ids(got), []flow.ID{d.ID})
		next := flow.Load(got[0])
		must(b, next.Claim(flow.ID{1}, "w", b.now))
		must(b, t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{next}}))
		got, err = t.Take(ctx, []string{"default"}, 10)
		must(b, err)
		equal(b, "take again", len(got), 0)
		events, err := t.Applied(ctx, d.ID, 1, 100)
		must(b, err)
		equal(b, "events", len(events), 3)
		return nil
	})
	equal(b, "stage", b.get(d.ID).Stage, flow.Provisioning)

	over := b.submit() // submitted and ended in one decision
	must(b, over.Finish(flow.Cancelled, flow.Outcome{Error: &flow.Error{Code: flow.CodeKeyFull, Message: "full"}}, b.now, 0))
	b.apply(over)
	equal(b, "over at once", b.get(over.ID), over.Execution)
	b.delta(store.Delta{}) // an empty decision changes nothing
}

// staleWrites checks that a decision on an old state is refused, for every kind of change.
func staleWrites(b *bench) {
	session := flow.ID{1}
	stale := func(what string, id flow.ID, change, decide func(*flow.Draft)) {
		b.Helper()
		old := b.load(id)
		now := b.load(id)
		change(now)
		b.apply(now)
		decide(old)
		before := b.get(id)
		wantErr(b, what, b.try(store.Delta{Drafts: []*flow.Draft{old}}), store.ErrConflict)
		equal(b, what+": after the refusal", b.get(id), before)
	}
	claim := func(s flow.ID) func(*flow.Draft) {
		return func(d *flow.Draft) { must(b, d.Claim(s, "w", b.now)) }
	}
	cancel := func(d *flow.Draft) { must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "", b.now)) }
	stale("claim what is claimed", b.ready(1), claim(session), claim(flow.ID{2}))
	stale("claim what is cancelled", b.ready(2), cancel, claim(session))
	stale("cancel what is claimed", b.ready(3), claim(session), cancel)
	stale("cancel twice", b.ready(4), cancel, cancel)
	lose := func(d *flow.Draft) { must(b, d.Lose("lease ran out", b.now, 0)) }
	stale("lose twice", b.claimed(session), lose, lose)

	id := b.claimed(session)
	old := b.load(id)
	b.report(id, flow.EvRunning)
	lose(old)
	wantErr(b, "lose what goes on", b.try(store.Delta{Drafts: []*flow.Draft{old}}), store.ErrConflict)

	twice := b.submit()
	b.apply(twice)
	wantErr(b, "submit an id twice", b.try(store.Delta{Drafts: []*flow.Draft{twice}}), store.ErrConflict)

	good := b.submit()
	wantErr(b, "a conflict beside a good row", b.try(store.Delta{Drafts: []*flow.Draft{good, twice}}), store.ErrConflict)
	_, err := b.s.Get(b.ctx(), good.ID)
	wantErr(b, "get the good row of a refused transaction", err, store.ErrNotFound)
}

// conditions checks that each part of the state of a decision is compared, even if everything else is unchanged.
func conditions(b *bench) {
	held, placeless := b.claimed(flow.ID{1}), b.submit()
	b.apply(placeless)
	for what, change := range map[string]func(*flow.Draft){
		"stage":             func(d *flow.Draft) { d.Stage = flow.Running },
		"attempt":           func(d *flow.Draft) { d.Attempt++ },
		"next event number": func(d *flow.Draft) { d.NextSeq++ },
		"place":             func(d *flow.Draft) { d.Place = flow.Waiting },
		"owner":             func(d *flow.Draft) { d.Owner = flow.ID{2} },
		"no owner":          func(d *flow.Draft) { d.Owner = flow.ID{} },
	} {
		id := held
		if what == "place" {
			id = placeless.ID // in another place, an execution held by a session would be refused
		}
		before := b.get(id).State
		for how, decide := range map[string]func(*flow.Draft){
			"a step": func(d *flow.Draft) { d.GapSince = b.now },
			"a move": func(d *flow.Draft) { d.Ticket = 99 },
			"an end": func(d *flow.Draft) {
				d.Place, d.Stage, d.FinishedAt, d.Outcome = flow.Finished, flow.Failed, b.now, &flow.Outcome{}
			},
		} {
			old, now := b.load(id), b.load(id)
			change(now)
			b.apply(now)
			decide(old)
			wantErr(b, how+" after another "+what, b.try(store.Delta{Drafts: []*flow.Draft{old}}), store.ErrConflict)
			now = b.load(id)
			now.State = before
			b.apply(now)
		}
	}
}

func rollback(b *bench) {
	stop := errors.New("stop")
	d := b.submit(func(r *flow.Request) { r.Labels = map[string]string{"a": "b"} })
	err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		must(b, t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}, Keys: []store.IdempotencyKey{{Key: "k", Execution: d.ID}}}))
		must(b, t.OpenSession(ctx, store.Session{ID: flow.ID{1}}, time.Minute))
		_, _, err := t.Define(ctx, store.Definition{Name: "d", Kind: "action", Document: []byte("{}"), CreatedAt: b.now})
		must(b, err)
		return stop
	})
	wantErr(b, "update", err, stop)
	func() {
		defer func() {
			if recover() == nil {
				b.Error("the panic of a decision was swallowed")
			}
		}()
		_ = b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			must(b, t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}))
			panic("a bug")
		})
	}()
	_, err = b.s.Get(b.ctx(), d.ID)
	wantErr(b, "get what was rolled back", err, store.ErrNotFound)
	_, err = b.s.Definition(b.ctx(), "d", 0)
	wantErr(b, "definition that was rolled back", err, store.ErrNotFound)
	b.delta(store.Delta{Drafts: []*flow.Draft{d}, Keys: []store.IdempotencyKey{{Key: "k", Execution: d.ID}}}) // there is no conflict
}

// badRow checks that the error of an impossible row differs from a conflict and from an outage, so that a batch can be split.
func badRow(b *bench) {
	orphan := b.submit(under(b.id(), "task", 0))
	good := b.submit()
	err := b.try(store.Delta{Drafts: []*flow.Draft{good, orphan}})
	if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
		b.Errorf("a child without its workflow: %v, want an error about the data", err)
	}
	_, err = b.s.Get(b.ctx(), good.ID)
	wantErr(b, "get the neighbour of a bad row", err, store.ErrNotFound)
	b.apply(good)
}

// refused plants rows with contradictory columns, which the database itself refuses.
func refused(b *bench) {
	mine := b.session(flow.ID{1}, time.Hour).ID
	wf := b.workflow()
	scheduled := func(change ...func(*flow.Request)) *flow.Draft {
		d := b.submit(change...)
		must(b, d.Schedule(int64(b.made), b.now))
		return d
	}
	b.refuses(map[string]func() *flow.Draft{
		"in the queue and not scheduled":            func() *flow.Draft { d := b.submit(); d.Place = flow.Ready; return d },
		"delayed and running":                       func() *flow.Draft { d := scheduled(); d.Place, d.Stage = flow.Delayed, flow.Running; return d },
		"in a line and running":                     func() *flow.Draft { d := scheduled(); d.Place, d.Stage = flow.Waiting, flow.Running; return d },
		"running and in no place":                   func() *flow.Draft { d := scheduled(); d.Place, d.Stage = 0, flow.Running; return d },
		"in a place that there is not":              func() *flow.Draft { d := scheduled(); d.Place = flow.Finished + 1; return d },
		"owned in the queue":                        func() *flow.Draft { d := scheduled(); d.Owner = mine; return d },
		"ended and not over":                        func() *flow.Draft { d := b.submit(); d.Place, d.Outcome = flow.Finished, &flow.Outcome{}; return d },
		"moved to a place that is not of its stage": func() *flow.Draft { d := b.load(b.ready(1)); d.Place = flow.Held; return d },
		"given an owner in the queue":               func() *flow.Draft { d := b.load(b.ready(2)); d.Owner = mine; return d },
		"a child that ends and is not over": func() *flow.Draft {
			d := b.load(b.claimed(mine, under(wf, "u", 0)))
			d.Place, d.Owner, d.Outcome = flow.Finished, flow.ID{}, &flow.Outcome{}
			return d
		},
	})
	aside := b.load(b.ready(3))
	aside.PutAside("the rules refuse its claim", b.now)
	b.apply(aside) // it leaves its queue but stays scheduled
}

// RefusedNumbers plants rows with impossible attempts and numbers. The database refuses them if the store leaves the check to the database
// and not to Check.
func RefusedNumbers(t *testing.T, s store.Store) {
	b := &bench{tester: t, tb: t, s: s, now: epoch}
	mine := b.session(flow.ID{1}, time.Hour).ID
	wf := b.workflow()
	b.refuses(map[string]func() *flow.Draft{
		"in attempt 0":             func() *flow.Draft { d := b.submit(); d.Attempt = 0; return d },
		"without an event":         func() *flow.Draft { d := b.submit(); d.NextSeq, d.Events = 1, nil; return d },
		"an item before the first": func() *flow.Draft { return b.submit(under(wf, "t", -1)) },
		"a child of attempt 0": func() *flow.Draft {
			return b.submit(under(wf, "t", 0), func(r *flow.Request) { r.ParentAttempt = 0 })
		},
		"set back to attempt 0": func() *flow.Draft { d := b.load(b.claimed(mine)); d.Attempt = 0; return d },
	})
}

// refuses plants bad rows together with good ones: neither is stored, and the error is about the data.
func (b *bench) refuses(plants map[string]func() *flow.Draft) {
	b.Helper()
	for what, plant := range plants {
		d := plant()
		good := b.submit()
		err := b.try(store.Delta{Drafts: []*flow.Draft{good, d}})
		if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
			b.Errorf("%s: %v, want an error about the data", what, err)
		}
		_, err = b.s.Get(b.ctx(), good.ID)
		wantErr(b, what+": its neighbour", err, store.ErrNotFound)
	}
}

func clock(b *bench) {
	var last time.Time
	for range 3 {
		now := inTx(b, func(ctx context.Context, t store.Tx) (time.Time, error) { return t.Now(ctx) })
		if now.Before(last) || now.Location() != time.UTC || now != now.Truncate(time.Microsecond) {
			b.Errorf("the database's clock says %v after %v: want UTC in microseconds, never going back", now, last)
		}
		last = now
	}
}
