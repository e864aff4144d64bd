package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// signal returns a small signal; change sets what the test needs.
func (b *bench) signal(change ...func(*flow.Signal)) flow.Signal {
	s := flow.Signal{ID: b.id(), Number: int64(b.made), Trigger: "alert", Source: flow.SourceAPI, At: b.now, State: flow.SignalMatched, Hash: [32]byte{1}, Data: raw(`{}`)}
	for _, c := range change {
		c(&s)
	}
	return s
}

func keyed(key string) func(*flow.Signal)     { return func(s *flow.Signal) { s.Key = key } }
func about(subject string) func(*flow.Signal) { return func(s *flow.Signal) { s.Subject = subject } }
func triggered(name string) func(*flow.Signal) {
	return func(s *flow.Signal) { s.Trigger = name }
}

func (b *bench) emit(all ...flow.Signal) {
	b.Helper()
	b.delta(store.Delta{Signals: store.SignalRows{New: all}})
}

// signals checks that signals are stored unchanged, found by id and key, and dropped by age.
func signals(b *bench) {
	full := b.signal(keyed("k"), about("db 1"), func(s *flow.Signal) {
		s.State, s.Source, s.Data = flow.SignalNew, "webhook:github", raw(`{"a": [1, "é\u0000"], "big": 12345678901234567890}`)
		s.SignalDetail = flow.SignalDetail{Headers: map[string]string{"x-event": "push"}, Cause: b.id(), Rules: []string{"a", "b"}}
	})
	plain := b.signal()
	other := b.signal(triggered("deploy"), keyed("k"), func(s *flow.Signal) { s.Body = [32]byte{9} })
	b.emit(full, plain, other)
	for _, s := range []flow.Signal{full, plain, other} {
		got, err := b.s.Signal(b.ctx(), s.ID)
		must(b, err)
		equal(b, "one", got, s)
	}
	_, err := b.s.Signal(b.ctx(), b.id())
	wantErr(b, "a signal that is not there", err, store.ErrNotFound)

	known := inTx(b, func(ctx context.Context, t store.Tx) (map[store.SignalKey]store.KnownSignal, error) {
		return t.Signalled(ctx, []store.SignalKey{{Trigger: "alert", Key: "k"}, {Trigger: "deploy", Key: "k"}, {Trigger: "alert", Key: "x"}})
	})
	equal(b, "known by key", known, map[store.SignalKey]store.KnownSignal{
		{Trigger: "alert", Key: "k"}: {ID: full.ID, Hash: full.Hash}, {Trigger: "deploy", Key: "k"}: {ID: other.ID, Hash: other.Hash}})
	for key, want := range map[store.SignalKey]bool{{Trigger: "alert", Key: "k"}: true, {Trigger: "alert", Key: "x"}: false} {
		has, err := b.s.HasSignal(b.ctx(), key)
		must(b, err)
		equal(b, "known by "+key.Trigger+" "+key.Key, has, want)
	}
	wantErr(b, "the same key again", b.try(store.Delta{Signals: store.SignalRows{New: []flow.Signal{b.signal(keyed("k"))}}}), store.ErrConflict)
	err = b.try(store.Delta{Signals: store.SignalRows{New: []flow.Signal{b.signal(func(s *flow.Signal) { s.State = 7 })}}})
	if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) {
		b.Errorf("a state that there is not: %v", err)
	}

	later := b.later(time.Hour)
	none, body, newer := [32]byte{8}, [32]byte{9}, b.signal(func(s *flow.Signal) { s.Body, s.Replayed = [32]byte{9}, true })
	b.emit(newer)
	bodies := inTx(b, func(ctx context.Context, t store.Tx) (map[[32]byte]time.Time, error) {
		return t.SignalledBodies(ctx, [][32]byte{body, none, body})
	})
	equal(b, "known by body", bodies, map[[32]byte]time.Time{body: newer.At})

	young := b.signal()
	b.emit(young)
	oldest := func(after string, n int) []store.OldestSignal {
		all, err := b.s.OldestSignals(b.ctx(), after, n)
		must(b, err)
		return all
	}
	equal(b, "the oldest", oldest("", 10), []store.OldestSignal{{Trigger: "alert", At: full.At}, {Trigger: "deploy", At: other.At}})
	equal(b, "the oldest of the first", oldest("", 1), []store.OldestSignal{{Trigger: "alert", At: full.At}})
	equal(b, "the oldest of the others", oldest("alert", 10), []store.OldestSignal{{Trigger: "deploy", At: other.At}})
	equal(b, "none is left", oldest("deploy", 10), []store.OldestSignal(nil))
	drop := func(trigger string, n int) int {
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropSignals(ctx, trigger, later, n) })
	}
	equal(b, "dropped of one trigger", drop("alert", 10), 1)
	equal(b, "dropped of another one", drop("deploy", 1), 1)
	equal(b, "dropped again", drop("alert", 10)+drop("deploy", 10)+drop("nothing", 10), 0)
	left, err := b.s.Signals(b.ctx(), store.SignalFilter{Limit: 10})
	must(b, err)
	equal(b, "left: what is new, and what is young", left, []flow.Signal{young, newer, full})
}

// droppedSignals checks that retention removes signals with their dependent rows, a limited number at a time.
func droppedSignals(b *bench) {
	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	var all []flow.Signal
	for range 6 {
		b.later(time.Millisecond)
		s := b.signal(func(s *flow.Signal) { s.Data = large })
		b.emit(s)
		all = append(all, s)
	}
	busy := b.signal()
	b.emit(busy)
	for _, rule := range []string{"a", "b", "c", "d"} {
		b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(busy, rule, func(e *flow.Enforcement) {
			e.State, e.Execution, e.Reason = flow.EnforcementRefused, flow.ID{}, flow.Reason{Code: flow.ReasonLoop, Message: "m"}
		})}}})
	}
	last := b.signal()
	b.emit(last)
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{all[0].Number, last.Number}}})
	})
	late := b.now.Add(time.Hour)
	drop := func(n int) int {
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropSignals(ctx, "alert", late, n) })
	}
	equal(b, "dropped of six megabytes", drop(100), 4)
	uncorrelated, err := b.s.UncorrelatedSignals(b.ctx(), late, 0, 10)
	must(b, err)
	equal(b, "unmet", uncorrelated, []flow.Signal{last})
	equal(b, "dropped up to a signal with four enforcements", drop(4), 3)
	equal(b, "the last", drop(4), 1)
	left, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Limit: 10})
	must(b, err)
	equal(b, "enforcements", len(left), 0)
}

// signalPages checks filters, orders, cursors, and the limit of a page in bytes.
func signalPages(b *bench) {
	var all []flow.Signal // newest first
	for i := range 12 {
		if i%2 == 0 {
			b.later(time.Minute)
		}
		s := b.signal(triggered([]string{"a", "b"}[i%2]), about([]string{"", "x", "y"}[i%3]), func(s *flow.Signal) { s.Source = fmt.Sprint("s", i%4) })
		b.emit(s)
		all = append([]flow.Signal{s}, all...)
	}
	pick := func(want func(*flow.Signal) bool) (some []flow.Signal) {
		for i := range all {
			if want(&all[i]) {
				some = append(some, all[i])
			}
		}
		return some
	}
	since := all[6].At
	for what, c := range map[string]struct {
		f    store.SignalFilter
		want func(*flow.Signal) bool
	}{
		"all":               {store.SignalFilter{}, func(*flow.Signal) bool { return true }},
		"trigger":           {store.SignalFilter{Trigger: "a"}, func(s *flow.Signal) bool { return s.Trigger == "a" }},
		"subject":           {store.SignalFilter{Subject: "x"}, func(s *flow.Signal) bool { return s.Subject == "x" }},
		"source":            {store.SignalFilter{Source: "s3"}, func(s *flow.Signal) bool { return s.Source == "s3" }},
		"since":             {store.SignalFilter{Since: since}, func(s *flow.Signal) bool { return !s.At.Before(since) }},
		"trigger and since": {store.SignalFilter{Trigger: "b", Since: since}, func(s *flow.Signal) bool { return s.Trigger == "b" && !s.At.Before(since) }},
		"everything": {store.SignalFilter{Trigger: "b", Subject: "x", Source: "s1", Since: since}, func(s *flow.Signal) bool {
			return s.Trigger == "b" && s.Subject == "x" && s.Source == "s1" && !s.At.Before(since)
		}},
	} {
		want := pick(c.want)
		for _, limit := range []int{100, 1, 3} {
			var got []flow.Signal
			for c.f.Limit, c.f.Before = limit, (store.SignalPlace{}); ; {
				page, err := b.s.Signals(b.ctx(), c.f)
				must(b, err)
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
				c.f.Before = store.PlaceOf(&page[len(page)-1])
			}
			equal(b, fmt.Sprintf("%s by pages of %d", what, limit), got, want)
		}
	}

	var got []flow.Signal
	for place := (store.SignalPlace{At: since}); ; {
		page, err := b.s.SignalsAbout(b.ctx(), "b", "x", place, 1)
		must(b, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		place = store.PlaceOf(&page[0])
	}
	want := pick(func(s *flow.Signal) bool { return s.Trigger == "b" && s.Subject == "x" && !s.At.Before(since) })
	for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
		want[i], want[j] = want[j], want[i]
	}
	equal(b, "about a subject, the oldest first", got, want)

	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for range 6 {
		b.emit(b.signal(triggered("large"), about("z"), func(s *flow.Signal) { s.Data = large }))
	}
	page, err := b.s.Signals(b.ctx(), store.SignalFilter{Trigger: "large", Limit: 10})
	must(b, err)
	one, err := b.s.SignalsAbout(b.ctx(), "large", "z", store.SignalPlace{}, 10)
	must(b, err)
	if len(page) != 4 || len(one) != 4 {
		b.Errorf("pages of %d and %d signals of a megabyte, want 4", len(page), len(one))
	}
}

// racingSignals lets eight writers emit under one key concurrently: there is one signal, the same for all.
func racingSignals(b *bench) {
	for round := range 5 {
		if won := raceSignal(b, fmt.Sprint(round), 8, func(int) store.Store { return b.s }); won != 1 {
			b.Errorf("round %d: %d of 8 writers kept their signal", round, won)
		}
	}
}

// doubleSignal is racingSignals with two stores.
func doubleSignal(s *shared) {
	for round := range 5 {
		if won := raceSignal(s.bench, fmt.Sprint(round), 8, func(i int) store.Store { return s.both[i%2] }); won != 1 {
			s.Errorf("round %d: %d of 8 writers kept their signal", round, won)
		}
	}
}

// raceSignal lets n writers emit two signals each, under the same two keys in different orders, and returns how many stored theirs. A
// writer's execution exists exactly if its signals do.
func raceSignal(b *bench, round string, n int, on func(int) store.Store) int {
	name := "race " + round
	all := make([][]flow.Signal, n)
	drafts := make([]*flow.Draft, n)
	for i := range n {
		all[i] = []flow.Signal{b.signal(keyed(round + "a")), b.signal(keyed(round + "b"))}
		if i%2 == 1 {
			all[i][0], all[i][1] = all[i][1], all[i][0]
		}
		drafts[i] = b.submit(named(name))
	}
	won := b.winners(n, func(i int) error {
		return on(i).Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			d := *drafts[i]
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}, Signals: store.SignalRows{New: all[i]}})
		})
	})
	made, err := store.List(b.ctx(), b.s, store.Filter{Action: name, Limit: 10})
	if err != nil || len(made) != 1 {
		b.Errorf("%d executions (%v) beside one signal", len(made), err)
	}
	return won
}
