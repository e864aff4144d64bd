package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const (
	scheduleColumns = `name, version, next, due, last, paused_at, execution, reason`
	tickColumns     = `schedule, nominal, tag, last, count, at, execution, why, message`
)

var (
	qSchedule      = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name = $1`)
	qLockSchedules = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE`)
	qPassSchedules = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE SKIP LOCKED`)
	qSchedules     = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE name > $1 ORDER BY name LIMIT $2`)
	qDueSchedules  = sql(`SELECT ` + scheduleColumns + ` FROM {s}.schedules WHERE due IS NOT NULL AND due <= $1::bigint ORDER BY due LIMIT $2`)
	qNextSchedule  = sql(`SELECT due FROM {s}.schedules WHERE due IS NOT NULL AND due > $1::bigint ORDER BY due LIMIT 1`)

	// Rows are written one after the other in the order of their names, as they are locked.
	qPutSchedules = sql(`INSERT INTO {s}.schedules (` + scheduleColumns + `)
		SELECT * FROM ` + rowsOf("name text, version bigint, next bigint, due bigint, last bigint, paused_at bigint, execution uuid, reason text") + ` AS v
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, next = excluded.next, due = excluded.due, last = excluded.last,
			paused_at = excluded.paused_at, execution = excluded.execution, reason = excluded.reason`)

	qTicks = sql(`SELECT ` + tickColumns + ` FROM {s}.ticks WHERE schedule = $1 AND nominal < $2::bigint ORDER BY nominal DESC, tag LIMIT $3`)

	qAddTicks = sql(`INSERT INTO {s}.ticks (` + tickColumns + `) SELECT * FROM ` +
		rowsOf("schedule text, nominal bigint, tag text, last bigint, count bigint, at bigint, execution uuid, why text, message text") + ` AS v`)

	qDropTicks = sql(`DELETE FROM {s}.ticks k USING (SELECT schedule, nominal, tag FROM {s}.ticks WHERE at < $1::bigint ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("k.schedule", "v.schedule") + ` AND k.nominal = v.nominal AND k.tag = v.tag RETURNING 1`)
)

func readSchedules(all *[]store.Schedule) func(*rows) error {
	return func(r *rows) error {
		k := store.Schedule{Name: r.text(), Version: int(r.int())}
		for _, t := range []*time.Time{&k.Next, &k.Due, &k.Last, &k.PausedAt} {
			*t = r.time()
		}
		k.Execution, k.Reason = r.id(), r.text()
		*all = append(*all, k)
		return nil
	}
}

func readTicks(all *[]store.Tick) func(*rows) error {
	return func(r *rows) error {
		*all = append(*all, store.Tick{Schedule: r.text(), Nominal: r.time(), Tag: r.text(), Last: r.time(), Count: int(r.int()), At: r.time(),
			Execution: r.id(), Why: r.text(), Message: r.text()})
		return nil
	}
}

// LockSchedules implements store.Schedules.
func (t *tx) LockSchedules(ctx context.Context, names []string, pass bool) ([]store.Schedule, error) {
	q := qLockSchedules
	if pass {
		q = qPassSchedules
	}
	var all []store.Schedule
	if err := t.ask(ctx, q, t.args().texts(names), readSchedules(&all)); err != nil {
		return nil, fmt.Errorf("lock %d schedules: %w", len(names), err)
	}
	return all, nil
}

// PutSchedules implements store.Schedules.
func (t *tx) PutSchedules(ctx context.Context, all []store.Schedule) error {
	var cols columns
	c := cols.begin(oidText, oidInt8, oidInt8, oidInt8, oidInt8, oidInt8, oidUUID, oidText)
	for i := range all {
		k := &all[i]
		c[0].text(k.Name)
		c[1].int(int64(k.Version))
		c[2].intOrNull(row.Micros(k.Next))
		c[3].intOrNull(row.Micros(k.Due))
		c[4].intOrNull(row.Micros(k.Last))
		c[5].intOrNull(row.Micros(k.PausedAt))
		c[6].idOrNull(k.Execution)
		c[7].text(k.Reason)
	}
	if cols.rows() == 0 {
		return nil
	}
	if err := t.ask(ctx, qPutSchedules, t.args().columns(&cols), nil); err != nil {
		return fmt.Errorf("write %d schedules: %w", len(all), err)
	}
	return nil
}

// AddTicks implements store.Schedules.
func (t *tx) AddTicks(ctx context.Context, all []store.Tick) error {
	var cols columns
	c := cols.begin(oidText, oidInt8, oidText, oidInt8, oidInt8, oidInt8, oidUUID, oidText, oidText)
	for i := range all {
		k := &all[i]
		c[0].text(k.Schedule)
		c[1].int(row.Micros(k.Nominal))
		c[2].text(k.Tag)
		c[3].int(row.Micros(k.Last))
		c[4].int(int64(k.Count))
		c[5].int(row.Micros(k.At))
		c[6].idOrNull(k.Execution)
		c[7].text(k.Why)
		c[8].text(k.Message)
	}
	if cols.rows() == 0 {
		return nil
	}
	if err := t.ask(ctx, qAddTicks, t.args().columns(&cols), nil); err != nil {
		return fmt.Errorf("write %d ticks: %w", len(all), err)
	}
	return nil
}

// DropTicks implements store.Schedules.
func (t *tx) DropTicks(ctx context.Context, before time.Time, n int) (dropped int, err error) {
	err = t.ask(ctx, qDropTicks, t.args().int(row.Micros(before)).int(int64(n)), func(*rows) error {
		dropped++
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("drop ticks: %w", err)
	}
	return dropped, nil
}

// Schedule implements store.ScheduleReader.
func (s *Store) Schedule(ctx context.Context, name string) (store.Schedule, error) {
	var all []store.Schedule
	var a args
	err := s.read(ctx, call{q: qSchedule, params: a.text(name).params, read: readSchedules(&all)})
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Schedule{}, fmt.Errorf("read schedule %q: %w", name, err)
	}
	return all[0], nil
}

// Schedules implements store.ScheduleReader.
func (s *Store) Schedules(ctx context.Context, after string, n int) (all []store.Schedule, err error) {
	var a args
	if err := s.read(ctx, call{q: qSchedules, params: a.text(after).int(int64(n)).params, read: readSchedules(&all)}); err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return all, nil
}

// DueSchedules implements store.ScheduleReader.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, n int) (all []store.Schedule, next time.Time, err error) {
	var due, later args
	err = s.read(ctx, call{q: qDueSchedules, params: due.int(row.Micros(now)).int(int64(n)).params, read: readSchedules(&all)},
		call{q: qNextSchedule, params: later.int(row.Micros(now)).params, read: func(r *rows) error {
			next = r.time()
			return nil
		}})
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
	var a args
	if err := s.read(ctx, call{q: qTicks, params: a.text(schedule).int(below).int(int64(n)).params, read: readTicks(&all)}); err != nil {
		return nil, fmt.Errorf("read ticks of schedule %q: %w", schedule, err)
	}
	return all, nil
}
