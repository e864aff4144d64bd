package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var schedules = relation[*store.Schedule, *store.Schedule]{
	{"name", oidText, func(c *column, k *store.Schedule) { c.text(k.Name) }, func(r *rows, k *store.Schedule) { k.Name = r.text() }},
	{"version", oidInt8, func(c *column, k *store.Schedule) { c.int(int64(k.Version)) }, func(r *rows, k *store.Schedule) { k.Version = int(r.int()) }},
	{"next", oidInt8, func(c *column, k *store.Schedule) { c.intOrNull(row.Micros(k.Next)) }, func(r *rows, k *store.Schedule) { k.Next = r.time() }},
	{"due", oidInt8, func(c *column, k *store.Schedule) { c.intOrNull(row.Micros(k.Due)) }, func(r *rows, k *store.Schedule) { k.Due = r.time() }},
	{"last", oidInt8, func(c *column, k *store.Schedule) { c.intOrNull(row.Micros(k.Last)) }, func(r *rows, k *store.Schedule) { k.Last = r.time() }},
	{"paused_at", oidInt8, func(c *column, k *store.Schedule) { c.intOrNull(row.Micros(k.PausedAt)) }, func(r *rows, k *store.Schedule) { k.PausedAt = r.time() }},
	{"execution", oidUUID, func(c *column, k *store.Schedule) { c.idOrNull(k.Execution) }, func(r *rows, k *store.Schedule) { k.Execution = r.id() }},
	{"reason", oidText, func(c *column, k *store.Schedule) { c.text(k.Reason) }, func(r *rows, k *store.Schedule) { k.Reason = r.text() }},
	{"counted_from", oidInt8, func(c *column, k *store.Schedule) { c.intOrNull(row.Micros(k.CountedFrom)) }, func(r *rows, k *store.Schedule) { k.CountedFrom = r.time() }},
}

var ticks = relation[*store.Tick, *store.Tick]{
	{"schedule", oidText, func(c *column, k *store.Tick) { c.text(k.Schedule) }, func(r *rows, k *store.Tick) { k.Schedule = r.text() }},
	{"nominal", oidInt8, func(c *column, k *store.Tick) { c.int(row.Micros(k.Nominal)) }, func(r *rows, k *store.Tick) { k.Nominal = r.time() }},
	{"tag", oidText, func(c *column, k *store.Tick) { c.text(k.Tag) }, func(r *rows, k *store.Tick) { k.Tag = r.text() }},
	{"last", oidInt8, func(c *column, k *store.Tick) { c.int(row.Micros(k.Last)) }, func(r *rows, k *store.Tick) { k.Last = r.time() }},
	{"count", oidInt8, func(c *column, k *store.Tick) { c.int(int64(k.Count)) }, func(r *rows, k *store.Tick) { k.Count = int(r.int()) }},
	{"at", oidInt8, func(c *column, k *store.Tick) { c.int(row.Micros(k.At)) }, func(r *rows, k *store.Tick) { k.At = r.time() }},
	{"execution", oidUUID, func(c *column, k *store.Tick) { c.idOrNull(k.Execution) }, func(r *rows, k *store.Tick) { k.Execution = r.id() }},
	{"why", oidText, func(c *column, k *store.Tick) { c.text(k.Why) }, func(r *rows, k *store.Tick) { k.Why = r.text() }},
	{"message", oidText, func(c *column, k *store.Tick) { c.text(k.Message) }, func(r *rows, k *store.Tick) { k.Message = r.text() }},
}

// scheduleColumns and tickColumns are the columns that readers load.
var scheduleColumns, tickColumns = schedules.names(""), ticks.names("")

var (
	qSchedule      = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name = $1`)
	qLockSchedules = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE`)
	qHoldSchedules = sql(`SELECT name FROM {s}.schedules WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE`)
	qPassSchedules = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE SKIP LOCKED`)
	qAreSchedules  = sql(`SELECT 1 FROM {s}.schedules WHERE name = ANY ($1::text[]) LIMIT 1`)
	qSchedules     = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name > $1 ORDER BY name LIMIT $2`)
	qDueSchedules  = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE due IS NOT NULL AND due <= $1::bigint ORDER BY due LIMIT $2`)
	qNextSchedule  = sql(`SELECT due FROM {s}.schedules WHERE due IS NOT NULL AND due > $1::bigint ORDER BY due LIMIT 1`)

	// Rows are written one after the other, sorted by name as they are locked.
	qPutSchedules = sql(schedules.insert("schedules") + `
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, next = excluded.next, due = excluded.due, last = excluded.last,
			paused_at = excluded.paused_at, execution = excluded.execution, reason = excluded.reason, counted_from = excluded.counted_from`)

	qTicks = sql(`SELECT ` + tickColumns + ` FROM {s}.ticks WHERE schedule = $1 AND nominal < $2::bigint ORDER BY nominal DESC, tag LIMIT $3`)

	qTicksBetween = sql(`SELECT ` + tickColumns + ` FROM {s}.ticks WHERE schedule = $1 AND nominal BETWEEN $2::bigint AND $3::bigint ORDER BY nominal, tag`)

	qAddTicks = sql(ticks.insert("ticks"))
)

// LockSchedules implements store.Schedules. If the order does not allow to wait for the schedules now, it only tries.
func (t *tx) LockSchedules(ctx context.Context, names []string, pass bool) ([]store.Schedule, error) {
	names = unique(names)
	fresh := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return t.schedules[name] })
	wait := !pass && (len(fresh) == 0 || t.mayWaitForSchedules(fresh))
	q := qPassSchedules
	if wait {
		q = qLockSchedules
	}
	if !pass {
		t.asked = append(t.asked, locks{schedules: names})
	}
	var all []store.Schedule
	if err := t.ask(ctx, q, t.args().texts(names), readInto(&all, schedules)); err != nil {
		return nil, fmt.Errorf("lock %d schedules: %w", len(names), err)
	}
	for i := range all {
		t.lockedSchedule(all[i].Name)
	}
	if pass || wait || len(all) == len(names) {
		return all, nil
	}
	missing := slices.DeleteFunc(names, func(name string) bool { return t.schedules[name] })
	busy := false
	err := t.ask(ctx, qAreSchedules, t.args().texts(missing), func(*rows) error {
		busy = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lock %d schedules: %w", len(names), err)
	}
	if busy {
		return nil, t.giveUp()
	}
	return all, nil
}

// TicksBetween implements store.Schedules.
func (t *tx) TicksBetween(ctx context.Context, schedule string, first, last time.Time) ([]store.Tick, error) {
	var all []store.Tick
	err := t.ask(ctx, qTicksBetween, t.args().text(schedule).int(row.Micros(first)).int(row.Micros(last)), readInto(&all, ticks))
	return store.Result(all, err, "read ticks of schedule %q", schedule)
}

// Schedule implements store.ScheduleReader.
func (s *Store) Schedule(ctx context.Context, name string) (store.Schedule, error) {
	return one(ctx, s, qSchedule, new(args).text(name), schedules, "read schedule %q", name)
}

// Schedules implements store.ScheduleReader.
func (s *Store) Schedules(ctx context.Context, after string, n int) (all []store.Schedule, err error) {
	return list(ctx, s, qSchedules, new(args).text(after).int(int64(n)), schedules, "read schedules")
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
	return list(ctx, s, qTicks, new(args).text(schedule).int(below).int(int64(n)), ticks, "read ticks of schedule %q", schedule)
}
