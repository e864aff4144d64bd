package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func (b *bench) put(all ...store.Schedule) {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Schedules: store.ScheduleRows{Written: all}})
	})
}

func (b *bench) tick(all ...store.Tick) error {
	return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Schedules: store.ScheduleRows{Ticks: all}})
	})
}

// schedules checks that schedules are stored, found by name and by due time, and replaced under their names.
func schedules(b *bench) {
	at := func(minutes int) time.Time { return b.now.Add(time.Duration(minutes) * time.Minute) }
	full := store.Schedule{Name: "b", Version: 3, Next: at(5), Due: at(6), Last: at(-5), Execution: b.id(), Reason: "é", CountedFrom: at(-9)}
	paused := store.Schedule{Name: "c", Version: 1, Next: at(1), PausedAt: b.now, Reason: "for the weekend"}
	over := store.Schedule{Name: "a", Version: 2, Last: at(-1)}
	early := store.Schedule{Name: "d", Version: 1, Next: at(2), Due: at(2)}
	b.put(full, paused)
	b.put(over, early)
	read := func(after string, n int) []store.Schedule {
		all, err := b.s.Schedules(b.ctx(), after, n)
		must(b, err)
		return all
	}
	equal(b, "by name", read("", 10), []store.Schedule{over, full, paused, early})
	equal(b, "the next page", read("a", 2), []store.Schedule{full, paused})
	one, err := b.s.Schedule(b.ctx(), "b")
	must(b, err)
	equal(b, "one", one, full)
	_, err = b.s.Schedule(b.ctx(), "nobody")
	wantErr(b, "a schedule that is not there", err, store.ErrNotFound)
	locked := inTx(b, func(ctx context.Context, t store.Tx) ([]store.Schedule, error) {
		return t.LockSchedules(ctx, []string{"b", "d", "e"}, true)
	})
	equal(b, "locked", locked, []store.Schedule{full, early})

	due := func(now time.Time, n int) (all []store.Schedule, next time.Time) {
		all, next, err := b.s.DueSchedules(b.ctx(), now, n)
		must(b, err)
		return all, next
	}
	all, next := due(at(1), 10)
	equal(b, "nothing is due", []any{len(all), next}, []any{0, at(2)})
	all, next = due(at(2), 10)
	equal(b, "due", all, []store.Schedule{early})
	equal(b, "the next one", next, at(6))
	all, next = due(at(6), 1)
	equal(b, "the first that is due", all, []store.Schedule{early})
	equal(b, "nothing is later", next, time.Time{})

	full.Next, full.Due, full.Last, full.Execution = at(10), at(10), at(5), b.id()
	b.put(full)
	one, err = b.s.Schedule(b.ctx(), "b")
	must(b, err)
	equal(b, "replaced", one, full)
}

// ticks checks that a nominal time of a schedule is stored once, and that ticks are read and dropped.
func ticks(b *bench) {
	at := func(minutes int) time.Time { return b.now.Add(time.Duration(minutes) * time.Minute) }
	first := store.Tick{Schedule: "s", Nominal: at(0), Last: at(0), Count: 1, Execution: b.id(), At: at(0), Why: "on_time"}
	missed := store.Tick{Schedule: "s", Nominal: at(1), Last: at(3), Count: 3, At: at(9), Why: "catch_up", Message: "é"}
	other := store.Tick{Schedule: "t", Nominal: at(0), Last: at(0), Count: 1, Execution: b.id(), At: at(1), Why: "on_time"}
	hand := store.Tick{Schedule: "s", Nominal: at(0), Tag: "x", Last: at(0), Count: 1, Execution: b.id(), At: at(2), Why: "by_hand"}
	must(b, b.tick(first, other))
	must(b, b.tick(missed, hand))
	wantErr(b, "the same nominal time again", b.tick(store.Tick{Schedule: "s", Nominal: at(0), Last: at(0), Count: 1, At: at(5), Why: "on_time"}), store.ErrConflict)
	read := func(before time.Time, n int) []store.Tick {
		all, err := b.s.Ticks(b.ctx(), "s", before, n)
		must(b, err)
		return all
	}
	equal(b, "ticks", read(time.Time{}, 10), []store.Tick{missed, first, hand})
	equal(b, "the latest", read(time.Time{}, 1), []store.Tick{missed})
	equal(b, "before", read(at(1), 10), []store.Tick{first, hand})
	between := inTx(b, func(ctx context.Context, t store.Tx) ([]store.Tick, error) {
		return t.TicksBetween(ctx, "s", at(0), at(1))
	})
	equal(b, "between", between, []store.Tick{first, hand, missed})
	between = inTx(b, func(ctx context.Context, t store.Tx) ([]store.Tick, error) {
		return t.TicksBetween(ctx, "s", at(1), at(1))
	})
	equal(b, "at one time", between, []store.Tick{missed})
	drop := func(before time.Time, n int) int {
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropOld(ctx, store.OldTicks, before, n) })
	}
	equal(b, "dropped of two", drop(at(2), 1), 1)
	equal(b, "dropped", drop(at(2), 10), 1)
	equal(b, "dropped again", drop(at(2), 10), 0)
	equal(b, "left", read(time.Time{}, 10), []store.Tick{missed, hand})
}

// racingTicks lets eight writers submit an execution for one nominal time concurrently: there is one execution and one tick.
func racingTicks(b *bench) {
	for round := range 5 {
		nominal := b.later(time.Minute)
		won := raceTick(b, nominal, 8, func(int) store.Store { return b.s })
		if won != 1 {
			b.Errorf("round %d: %d of 8 writers fired", round, won)
		}
	}
}

// doubleTick is racingTicks with two stores.
func doubleTick(s *shared) {
	for round := range 5 {
		nominal := s.later(time.Minute)
		if won := raceTick(s.bench, nominal, 8, func(i int) store.Store { return s.both[i%2] }); won != 1 {
			s.Errorf("round %d: %d of 8 writers fired", round, won)
		}
	}
}

// raceTick returns how many of n writers fired a nominal time.
func raceTick(b *bench, nominal time.Time, n int, on func(int) store.Store) int {
	name := fmt.Sprintf("race %d", nominal.UnixMicro())
	drafts := make([]*flow.Draft, n)
	for i := range drafts {
		drafts[i] = b.submit(named(name))
	}
	won := b.winners(n, func(i int) error {
		return on(i).Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			d := *drafts[i]
			if err := t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}}); err != nil {
				return err
			}
			return t.Apply(ctx, store.Delta{Schedules: store.ScheduleRows{Ticks: []store.Tick{{Schedule: "s", Nominal: nominal, Last: nominal, Count: 1, Execution: d.ID, At: nominal, Why: "on_time"}}}})
		})
	})
	made, err := store.List(b.ctx(), b.s, store.Filter{Action: name, Limit: 10})
	if err != nil || len(made) != 1 {
		b.Errorf("%d executions (%v) of one tick", len(made), err)
		return 0
	}
	all, err := b.s.Ticks(b.ctx(), "s", nominal.Add(time.Microsecond), 1)
	if err != nil || len(all) != 1 || all[0].Execution != made[0].ID {
		b.Errorf("the tick %+v (%v) is not of execution %s", all, err, made[0].ID)
	}
	return won
}

// passedSchedules checks that a transaction skips schedules that another one has locked.
func passedSchedules(s *shared) {
	s.put(store.Schedule{Name: "a", Version: 1, Next: s.now, Due: s.now}, store.Schedule{Name: "b", Version: 1, Next: s.now, Due: s.now})
	err := s.both[0].Update(s.ctx(), func(ctx context.Context, t store.Tx) error {
		if all, err := t.LockSchedules(ctx, []string{"a"}, false); err != nil || len(all) != 1 {
			return fmt.Errorf("%d locked: %w", len(all), err)
		}
		return s.both[1].Update(s.ctx(), func(ctx context.Context, t store.Tx) error {
			all, err := t.LockSchedules(ctx, []string{"a", "b"}, true)
			if err == nil && (len(all) != 1 || all[0].Name != "b") {
				s.Errorf("locked %+v beside a transaction that holds a", all)
			}
			return err
		})
	})
	if err != nil {
		s.Error(err)
	}
}

// scheduleViolations plants rows that no engine writes.
func scheduleViolations(b *bench) {
	b.clean()
	next := b.now.Add(time.Hour)
	b.put(store.Schedule{Name: "due", Version: 1, Next: next, Due: next, PausedAt: b.now})
	b.broken(33, "due while it is paused")
	b.put(store.Schedule{Name: "due", Version: 1, Next: next, Due: next})
	b.clean()
	x := b.id()
	must(b, b.tick(store.Tick{Schedule: "due", Nominal: b.now, Last: b.now, Count: 1, Execution: x, At: b.now}))
	b.clean()
	must(b, b.tick(store.Tick{Schedule: "due", Nominal: next, Last: next, Count: 1, Execution: b.id(), At: b.now}))
	b.broken(26, "fired before its time")
	b.put(store.Schedule{Name: "due", Version: 1})
	b.clean()
	must(b, b.tick(store.Tick{Schedule: "due", Nominal: b.now.Add(-time.Minute), Last: b.now, Count: 2, At: b.now}))
	b.broken(26, "missed and fired")
	b.update(func(ctx context.Context, t store.Tx) error {
		_, err := t.DropOld(ctx, store.OldTicks, b.now.Add(time.Second), 10)
		return err
	})
	b.clean()
	must(b, b.tick(store.Tick{Schedule: "p", Nominal: b.now, Last: b.now, Execution: x, At: b.now}, store.Tick{Schedule: "q", Nominal: b.now, Last: b.now, Execution: x, At: b.now}))
	b.broken(26, "one execution of two ticks")
}
