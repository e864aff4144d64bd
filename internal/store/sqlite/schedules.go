package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const (
	scheduleColumns = `name, version, next, due, last, paused_at, execution, reason, counted_from`
	tickColumns     = `schedule, nominal, tag, last, count, at, execution, why, message`
)

var (
	qSchedule     = sql(`SELECT ` + scheduleColumns + ` FROM schedules WHERE name = ?`)
	qSchedules    = sql(`SELECT ` + scheduleColumns + ` FROM schedules WHERE name > ? ORDER BY name LIMIT ?`)
	qDueSchedules = sql(`SELECT ` + scheduleColumns + ` FROM schedules WHERE due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?`)
	qNextSchedule = sql(`SELECT min(due) FROM schedules WHERE due IS NOT NULL AND due > ?`)
	qPutSchedule  = sql(`INSERT OR REPLACE INTO schedules (` + scheduleColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	qTicks        = sql(`SELECT ` + tickColumns + ` FROM ticks WHERE schedule = ? AND nominal < ? ORDER BY nominal DESC, tag LIMIT ?`)
	qTicksBetween = sql(`SELECT ` + tickColumns + ` FROM ticks WHERE schedule = ? AND nominal BETWEEN ? AND ? ORDER BY nominal, tag`)
	qAddTick      = sql(`INSERT INTO ticks (` + tickColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
)

// schedules reads rows of scheduleColumns.
func (s *stmt) schedules() ([]store.Schedule, error) {
	var all []store.Schedule
	for s.next() {
		all = append(all, store.Schedule{Name: s.getText(), Version: int(s.getInt()), Next: row.FromMicros(s.getInt()), Due: row.FromMicros(s.getInt()),
			Last: row.FromMicros(s.getInt()), PausedAt: row.FromMicros(s.getInt()), Execution: s.getID(), Reason: s.getText(), CountedFrom: row.FromMicros(s.getInt())})
	}
	return all, s.done()
}

// ticks reads rows of tickColumns.
func (s *stmt) ticks() ([]store.Tick, error) {
	var all []store.Tick
	for s.next() {
		all = append(all, store.Tick{Schedule: s.getText(), Nominal: row.FromMicros(s.getInt()), Tag: s.getText(), Last: row.FromMicros(s.getInt()),
			Count: int(s.getInt()), At: row.FromMicros(s.getInt()), Execution: s.getID(), Why: s.getText(), Message: s.getText()})
	}
	return all, s.done()
}

// LockSchedules implements store.Schedules. There is one transaction at a time, so they are locked by reading them.
func (t *tx) LockSchedules(_ context.Context, names []string, _ bool) ([]store.Schedule, error) {
	var all []store.Schedule
	for _, name := range names {
		found, err := t.c.use(qSchedule).text(name).schedules()
		if err != nil {
			return nil, fmt.Errorf("lock schedule %q: %w", name, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// putSchedules writes how far schedules are.
func (t *tx) putSchedules(all []store.Schedule) error {
	for i := range all {
		k := &all[i]
		err := t.c.use(qPutSchedule).text(k.Name).int(int64(k.Version)).intOrNull(row.Micros(k.Next)).intOrNull(row.Micros(k.Due)).
			intOrNull(row.Micros(k.Last)).intOrNull(row.Micros(k.PausedAt)).id(k.Execution).text(k.Reason).intOrNull(row.Micros(k.CountedFrom)).run()
		if err != nil {
			return fmt.Errorf("write schedule %q: %w", k.Name, err)
		}
	}
	return nil
}

// addTicks inserts ticks.
func (t *tx) addTicks(all []store.Tick) error {
	for i := range all {
		k := &all[i]
		err := taken(t.c.use(qAddTick).text(k.Schedule).int(row.Micros(k.Nominal)).text(k.Tag).int(row.Micros(k.Last)).int(int64(k.Count)).
			int(row.Micros(k.At)).id(k.Execution).text(k.Why).text(k.Message).run())
		if err != nil {
			return fmt.Errorf("write tick %s of schedule %q: %w", k.Nominal, k.Schedule, err)
		}
	}
	return nil
}

// TicksBetween implements store.Schedules.
func (t *tx) TicksBetween(_ context.Context, schedule string, first, last time.Time) ([]store.Tick, error) {
	all, err := t.c.use(qTicksBetween).text(schedule).int(row.Micros(first)).int(row.Micros(last)).ticks()
	if err != nil {
		return nil, fmt.Errorf("read ticks of schedule %q: %w", schedule, err)
	}
	return all, nil
}

// Schedule implements store.ScheduleReader.
func (s *Store) Schedule(ctx context.Context, name string) (k store.Schedule, err error) {
	return one(ctx, s, func(c *conn) ([]store.Schedule, error) { return c.use(qSchedule).text(name).schedules() }, "read schedule %q", name)
}

// Schedules implements store.ScheduleReader.
func (s *Store) Schedules(ctx context.Context, after string, n int) (all []store.Schedule, err error) {
	return list(ctx, s, func(c *conn) ([]store.Schedule, error) {
		return c.use(qSchedules).text(after).int(int64(n)).schedules()
	}, "read schedules")
}

// DueSchedules implements store.ScheduleReader.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, n int) (all []store.Schedule, next time.Time, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		if all, err = c.use(qDueSchedules).int(row.Micros(now)).int(int64(n)).schedules(); err != nil {
			return err
		}
		k := c.use(qNextSchedule).int(row.Micros(now))
		if k.next() {
			next = row.FromMicros(k.getInt())
		}
		return k.done()
	})
	if err != nil {
		return nil, next, fmt.Errorf("look for due schedules: %w", err)
	}
	return all, next, nil
}

// Ticks implements store.ScheduleReader.
func (s *Store) Ticks(ctx context.Context, schedule string, before time.Time, n int) (all []store.Tick, err error) {
	below := row.Micros(before)
	if before.IsZero() {
		below = 1<<63 - 1
	}
	return list(ctx, s, func(c *conn) ([]store.Tick, error) {
		return c.use(qTicks).text(schedule).int(below).int(int64(n)).ticks()
	}, "read ticks of schedule %q", schedule)
}
