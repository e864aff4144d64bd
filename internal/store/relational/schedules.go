package relational

import (
	"context"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var schedules = Relation[store.Schedule]{
	text("name", func(k *store.Schedule) *string { return &k.Name }),
	number("version", Int8, func(k *store.Schedule) *int { return &k.Version }),
	momentOrNull("next", func(k *store.Schedule) *time.Time { return &k.Next }),
	momentOrNull("due", func(k *store.Schedule) *time.Time { return &k.Due }),
	momentOrNull("last", func(k *store.Schedule) *time.Time { return &k.Last }),
	momentOrNull("paused_at", func(k *store.Schedule) *time.Time { return &k.PausedAt }),
	idOrNull("execution", func(k *store.Schedule) *flow.ID { return &k.Execution }),
	text("reason", func(k *store.Schedule) *string { return &k.Reason }),
	momentOrNull("counted_from", func(k *store.Schedule) *time.Time { return &k.CountedFrom }),
}

var ticks = Relation[store.Tick]{
	text("schedule", func(k *store.Tick) *string { return &k.Schedule }),
	moment("nominal", func(k *store.Tick) *time.Time { return &k.Nominal }),
	text("tag", func(k *store.Tick) *string { return &k.Tag }),
	moment("last", func(k *store.Tick) *time.Time { return &k.Last }),
	number("count", Int8, func(k *store.Tick) *int { return &k.Count }),
	moment("at", func(k *store.Tick) *time.Time { return &k.At }),
	idOrNull("execution", func(k *store.Tick) *flow.ID { return &k.Execution }),
	text("why", func(k *store.Tick) *string { return &k.Why }),
	text("message", func(k *store.Tick) *string { return &k.Message }),
}

var (
	readSchedules = `SELECT ` + schedules.names("") + ` FROM {s}.schedules `
	readTicks     = `SELECT ` + ticks.names("") + ` FROM {s}.ticks `

	qSchedule      = same(readSchedules + `WHERE name = $1`)
	qLockSchedules = sql(func(d dialect) string {
		return readSchedules + `WHERE ` + d.in("name", Text) + ` ORDER BY name` + d.forUpdate()
	})
	qPassSchedules = sql(func(d dialect) string {
		return readSchedules + `WHERE ` + d.in("name", Text) + ` ORDER BY name` + d.skipLocked()
	})
	qSchedules    = same(readSchedules + `WHERE name > $1 ORDER BY name LIMIT $2`)
	qDueSchedules = same(readSchedules + `WHERE due IS NOT NULL AND due <= $1::bigint ORDER BY due LIMIT $2`)
	qNextSchedule = same(`SELECT due FROM {s}.schedules WHERE due IS NOT NULL AND due > $1::bigint ORDER BY due LIMIT 1`)
	qPutSchedules = sql(func(d dialect) string { return schedules.upsert(d, "schedules", "name") })

	qTicks        = same(readTicks + `WHERE schedule = $1 AND nominal < $2::bigint ORDER BY nominal DESC, tag LIMIT $3`)
	qTicksBetween = same(readTicks + `WHERE schedule = $1 AND nominal BETWEEN $2::bigint AND $3::bigint ORDER BY nominal, tag`)
	qAddTicks     = sql(func(d dialect) string { return ticks.insert(d, "ticks") })
)

// LockSchedules implements store.Schedules. It waits for a transaction that has locked some of them, unless pass is set.
func (t Tx) LockSchedules(ctx context.Context, names []string, pass bool) ([]store.Schedule, error) {
	q := qLockSchedules
	if pass {
		q = qPassSchedules
	}
	return list(ctx, t, Call{Statement: q, Rows: keys.input(names)}, schedules, "lock %d schedules", len(names))
}

func (t Tx) TicksBetween(ctx context.Context, schedule string, first, last time.Time) ([]store.Tick, error) {
	return list(ctx, t, Call{Statement: qTicksBetween, Args: []any{schedule, first, last}}, ticks, "read ticks of schedule %q", schedule)
}

func (s Reader) Schedule(ctx context.Context, name string) (store.Schedule, error) {
	return one(ctx, s, Call{Statement: qSchedule, Args: []any{name}}, schedules, "read schedule %q", name)
}

func (s Reader) Schedules(ctx context.Context, after string, n int) ([]store.Schedule, error) {
	return list(ctx, s, Call{Statement: qSchedules, Args: []any{after, n}}, schedules, "read schedules")
}

func (s Reader) DueSchedules(ctx context.Context, now time.Time, n int) ([]store.Schedule, time.Time, error) {
	return due(ctx, s, qDueSchedules, qNextSchedule, schedules, now, n, "look for due schedules")
}

func (s Reader) Ticks(ctx context.Context, schedule string, before time.Time, n int) ([]store.Tick, error) {
	below := int64(math.MaxInt64)
	if !before.IsZero() {
		below = row.Micros(before)
	}
	return list(ctx, s, Call{Statement: qTicks, Args: []any{schedule, below, n}}, ticks, "read ticks of schedule %q", schedule)
}
