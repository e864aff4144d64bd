package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/row"
)

var qPending = sql(relational.ForSQLite(`SELECT coalesce((SELECT max(generation) FROM switches), 0),
	EXISTS (SELECT 1 FROM sessions WHERE expires_at <= $1),
	(SELECT min(wake) FROM live WHERE wake IS NOT NULL),
	(SELECT min(due) FROM schedules WHERE due IS NOT NULL),
	(SELECT min(wake) FROM windows),
	EXISTS (SELECT 1 FROM signals s WHERE state = 1 AND ` + relational.NotAside(store.AsideMatching, "s.id", "$2") + `),
	EXISTS (SELECT 1 FROM waits w WHERE looked = 0 AND signal IS NULL
		AND ` + relational.NotAside(store.AsideScan, "w.execution", "$2") + `)
		OR EXISTS (SELECT 1 FROM unmet u CROSS JOIN signals s ON s.n = u.signal
		WHERE ` + relational.NotAside(store.AsideCorrelation, "s.id", "$2") + `)`))

func (s *Store) Pending(ctx context.Context, now time.Time) (p store.Pending, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.use(qPending).int(s.leaseNow()).int(row.Micros(now))
		if q.next() {
			p.Generation, p.Expired = q.getInt(), q.getInt() == 1
			p.Wake, p.Schedule, p.Window = row.FromMicros(q.getInt()), row.FromMicros(q.getInt()), row.FromMicros(q.getInt())
			p.Signals, p.Correlations = q.getInt() == 1, q.getInt() == 1
		}
		return q.done()
	})
	if err != nil {
		return store.Pending{}, fmt.Errorf("look for pending work: %w", err)
	}
	p.Now = s.now()
	return p, nil
}
