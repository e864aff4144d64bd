package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// schedules are the columns of the states of schedules.
var schedules = relation[*store.Schedule, *store.Schedule]{
	{"name", func(s *stmt, x *store.Schedule) { s.text(x.Name) }, func(s *stmt, x *store.Schedule) { x.Name = s.getText() }},
	{"version", func(s *stmt, x *store.Schedule) { s.int(int64(x.Version)) }, func(s *stmt, x *store.Schedule) { x.Version = int(s.getInt()) }},
	{"next", func(s *stmt, x *store.Schedule) { s.timeOrNull(x.Next) }, func(s *stmt, x *store.Schedule) { x.Next = s.getTime() }},
	{"due", func(s *stmt, x *store.Schedule) { s.timeOrNull(x.Due) }, func(s *stmt, x *store.Schedule) { x.Due = s.getTime() }},
	{"last", func(s *stmt, x *store.Schedule) { s.timeOrNull(x.Last) }, func(s *stmt, x *store.Schedule) { x.Last = s.getTime() }},
	{"paused_at", func(s *stmt, x *store.Schedule) { s.timeOrNull(x.PausedAt) }, func(s *stmt, x *store.Schedule) { x.PausedAt = s.getTime() }},
	{"execution", func(s *stmt, x *store.Schedule) { s.id(x.Execution) }, func(s *stmt, x *store.Schedule) { x.Execution = s.getID() }},
	{"reason", func(s *stmt, x *store.Schedule) { s.text(x.Reason) }, func(s *stmt, x *store.Schedule) { x.Reason = s.getText() }},
	{"counted_from", func(s *stmt, x *store.Schedule) { s.timeOrNull(x.CountedFrom) }, func(s *stmt, x *store.Schedule) { x.CountedFrom = s.getTime() }},
}

// ticks are the columns of the times at which schedules were due.
var ticks = relation[*store.Tick, *store.Tick]{
	{"schedule", func(s *stmt, x *store.Tick) { s.text(x.Schedule) }, func(s *stmt, x *store.Tick) { x.Schedule = s.getText() }},
	{"nominal", func(s *stmt, x *store.Tick) { s.time(x.Nominal) }, func(s *stmt, x *store.Tick) { x.Nominal = s.getTime() }},
	{"tag", func(s *stmt, x *store.Tick) { s.text(x.Tag) }, func(s *stmt, x *store.Tick) { x.Tag = s.getText() }},
	{"last", func(s *stmt, x *store.Tick) { s.time(x.Last) }, func(s *stmt, x *store.Tick) { x.Last = s.getTime() }},
	{"count", func(s *stmt, x *store.Tick) { s.int(int64(x.Count)) }, func(s *stmt, x *store.Tick) { x.Count = int(s.getInt()) }},
	{"at", func(s *stmt, x *store.Tick) { s.time(x.At) }, func(s *stmt, x *store.Tick) { x.At = s.getTime() }},
	{"execution", func(s *stmt, x *store.Tick) { s.id(x.Execution) }, func(s *stmt, x *store.Tick) { x.Execution = s.getID() }},
	{"why", func(s *stmt, x *store.Tick) { s.text(x.Why) }, func(s *stmt, x *store.Tick) { x.Why = s.getText() }},
	{"message", func(s *stmt, x *store.Tick) { s.text(x.Message) }, func(s *stmt, x *store.Tick) { x.Message = s.getText() }},
}

var (
	qSchedule     = sql(`SELECT ` + schedules.names("") + ` FROM schedules WHERE name = ?`)
	qSchedules    = sql(`SELECT ` + schedules.names("") + ` FROM schedules WHERE name > ? ORDER BY name LIMIT ?`)
	qDueSchedules = sql(`SELECT ` + schedules.names("") + ` FROM schedules WHERE due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?`)
	qNextSchedule = sql(`SELECT min(due) FROM schedules WHERE due IS NOT NULL AND due > ?`)
	qPutSchedule  = sql(schedules.replace("schedules"))
	qTicks        = sql(`SELECT ` + ticks.names("") + ` FROM ticks WHERE schedule = ? AND nominal < ? ORDER BY nominal DESC, tag LIMIT ?`)
	qTicksBetween = sql(`SELECT ` + ticks.names("") + ` FROM ticks WHERE schedule = ? AND nominal BETWEEN ? AND ? ORDER BY nominal, tag`)
	qAddTick      = sql(ticks.insert("ticks"))
)

// LockSchedules implements store.Schedules. There is one transaction at a time, so reading locks them.
func (t *tx) LockSchedules(_ context.Context, names []string, _ bool) ([]store.Schedule, error) {
	var all []store.Schedule
	for _, name := range names {
		found, err := rowsOf(t.c.use(qSchedule).text(name), schedules)
		if err != nil {
			return nil, fmt.Errorf("lock schedule %q: %w", name, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// putSchedules writes the states of schedules.
func (t *tx) putSchedules(d *store.Delta) error {
	for i := range d.Schedules {
		k := &d.Schedules[i]
		if err := schedules.bind(t.c.use(qPutSchedule), k).run(); err != nil {
			return fmt.Errorf("write schedule %q: %w", k.Name, err)
		}
	}
	return nil
}

// addTicks inserts ticks.
func (t *tx) addTicks(d *store.Delta) error {
	for i := range d.Ticks {
		k := &d.Ticks[i]
		if err := taken(ticks.bind(t.c.use(qAddTick), k).run()); err != nil {
			return fmt.Errorf("write tick %s of schedule %q: %w", k.Nominal, k.Schedule, err)
		}
	}
	return nil
}

// TicksBetween implements store.Schedules.
func (t *tx) TicksBetween(_ context.Context, schedule string, first, last time.Time) ([]store.Tick, error) {
	all, err := rowsOf(t.c.use(qTicksBetween).text(schedule).int(row.Micros(first)).int(row.Micros(last)), ticks)
	return store.Result(all, err, "read ticks of schedule %q", schedule)
}

// Schedule implements store.ScheduleReader.
func (s *Store) Schedule(ctx context.Context, name string) (k store.Schedule, err error) {
	return one(ctx, s, func(c *conn) ([]store.Schedule, error) { return rowsOf(c.use(qSchedule).text(name), schedules) }, "read schedule %q", name)
}

// Schedules implements store.ScheduleReader.
func (s *Store) Schedules(ctx context.Context, after string, n int) (all []store.Schedule, err error) {
	return list(ctx, s, func(c *conn) ([]store.Schedule, error) {
		return rowsOf(c.use(qSchedules).text(after).int(int64(n)), schedules)
	}, "read schedules")
}

// DueSchedules implements store.ScheduleReader.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, n int) (all []store.Schedule, next time.Time, err error) {
	return due(ctx, s, qDueSchedules, qNextSchedule, schedules, now, n, "look for due schedules")
}

// Ticks implements store.ScheduleReader.
func (s *Store) Ticks(ctx context.Context, schedule string, before time.Time, n int) (all []store.Tick, err error) {
	below := row.Micros(before)
	if before.IsZero() {
		below = 1<<63 - 1
	}
	return list(ctx, s, func(c *conn) ([]store.Tick, error) {
		return rowsOf(c.use(qTicks).text(schedule).int(below).int(int64(n)), ticks)
	}, "read ticks of schedule %q", schedule)
}
