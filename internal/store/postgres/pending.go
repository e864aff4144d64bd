package postgres

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qPending = sql(`SELECT coalesce((SELECT generation FROM {s}.switches WHERE generation > 0 ORDER BY generation DESC LIMIT 1), 0),
		(SELECT wake FROM {s}.live WHERE wake > 0 ORDER BY wake LIMIT 1),
		(SELECT due FROM {s}.schedules WHERE due IS NOT NULL AND due > 0 ORDER BY due LIMIT 1),
		(SELECT wake FROM {s}.windows WHERE wake > 0 ORDER BY wake LIMIT 1),
		(SELECT true FROM {s}.signals s WHERE state = 1 AND at > 0
			AND ` + relational.NotAside(store.AsideMatching, "s.id", "$1") + ` ORDER BY at, n LIMIT 1) IS NOT NULL,
		(SELECT true FROM {s}.waits w WHERE NOT looked AND signal IS NULL AND execution > $2
			AND ` + relational.NotAside(store.AsideScan, "w.execution", "$1") + `
			ORDER BY execution LIMIT 1) IS NOT NULL
		OR (SELECT true FROM (SELECT signal FROM {s}.unmet WHERE signal > 0 ORDER BY signal) u
			CROSS JOIN LATERAL (SELECT n FROM {s}.signals s WHERE s.n = u.signal
				AND ` + relational.NotAside(store.AsideCorrelation, "s.id", "$1") + ` OFFSET 0) s LIMIT 1) IS NOT NULL`)

	qLapsed = sql(`SELECT (SELECT true FROM {s}.sessions WHERE expires_at <= ` + leaseNow + ` LIMIT 1) IS NOT NULL`)
)

// Pending implements store.PendingReader. All statements go in one round trip.
func (s *Store) Pending(ctx context.Context, now time.Time) (p store.Pending, err error) {
	err = s.read(ctx, call{q: qPending, params: new(args).int(row.Micros(now)).id(flow.ID{}).params, read: func(r *rows) error {
		p.Generation = r.int()
		p.Wake, p.Schedule, p.Window = r.time(), r.time(), r.time()
		p.Signals, p.Correlations = r.bool(), r.bool()
		return nil
	}}, call{q: qLapsed, read: readTo(&p.Expired, (*rows).bool)}, call{q: qNow, read: func(r *rows) error {
		p.Now = epoch.Add(time.Duration(r.int()) * time.Microsecond)
		return nil
	}})
	return store.Result(p, err, "look for pending work")
}
