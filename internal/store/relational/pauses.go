package relational

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

var pauses = Relation[store.Pause]{
	number("generation", Int8, func(p *store.Pause) *int64 { return &p.Generation }),
	number("kind", Int2, func(p *store.Pause) *store.PauseKind { return &p.Of }),
	text("name", func(p *store.Pause) *string { return &p.Name }),
	truth("paused", func(p *store.Pause) *bool { return &p.Paused }),
	moment("at", func(p *store.Pause) *time.Time { return &p.At }),
	moment("until", func(p *store.Pause) *time.Time { return &p.Until }),
	text("who", func(p *store.Pause) *string { return &p.By }),
	text("reason", func(p *store.Pause) *string { return &p.Reason }),
}

// LastPause selects the latest generation of pauses.
const LastPause = `coalesce((SELECT generation FROM {s}.pauses WHERE generation > 0 ORDER BY generation DESC LIMIT 1), 0)`

var (
	qLastPause = same(`SELECT ` + LastPause)

	qPauseOf = same(`SELECT ` + pauses.names("") + ` FROM {s}.pauses WHERE kind = $1::bigint AND name = $2 ORDER BY generation DESC LIMIT 1`)

	qAddPause = sql(func(d dialect) string { return pauses.insert(d, "pauses") })

	qPauses = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT ` + pauses.names("") + ` FROM pauses WHERE paused = 1
				AND generation IN (SELECT max(generation) FROM pauses WHERE kind > 0 GROUP BY kind, name) ORDER BY kind, name`
		}
		return `SELECT p.* FROM (SELECT DISTINCT ON (kind, name) ` + pauses.names("") + ` FROM {s}.pauses WHERE kind > 0
			ORDER BY kind, name, generation DESC) p WHERE p.paused`
	})

	qPauseHistory = same(`SELECT ` + pauses.names("") + ` FROM {s}.pauses WHERE generation < $1
		AND ($2::bigint = 0 OR kind = $2::bigint) AND ($3::text = '' OR name = $3::text) ORDER BY generation DESC LIMIT $4`)
)

// ChangePause stores the result of decide for the latest pause of a subject, unless that is nil, and returns the subject's latest pause. No
// other transaction may change pauses at the same time.
func (t Tx) ChangePause(
	ctx context.Context, of store.PauseKind, name string, decide func(now time.Time, last store.Pause) *store.Pause, now time.Time,
) (latest store.Pause, changed bool, err error) {
	var all []store.Pause
	var last int64
	err = t.Run(ctx, Call{Statement: qPauseOf, Args: []any{int(of), name}, Read: into(&all, pauses)},
		Call{Statement: qLastPause, Read: readInt(&last)})
	if err != nil {
		return latest, false, err
	}
	if len(all) > 0 {
		latest = all[0]
	}
	p := decide(now, latest)
	if p == nil {
		return latest, false, nil
	}
	latest = *p
	latest.Generation, latest.Of, latest.Name = last+1, of, name
	return latest, true, t.Run(ctx, Call{Statement: qAddPause, Rows: pauses.input([]store.Pause{latest})})
}

func (t Tx) Pauses(ctx context.Context) ([]store.Pause, int64, error) { return Reader{t}.Pauses(ctx) }

// Pauses implements store.PauseReader. The generation is read first: pauses made after that only make the list newer than the generation.
func (s Reader) Pauses(ctx context.Context) (all []store.Pause, last int64, err error) {
	err = s.Run(ctx, Call{Statement: qLastPause, Read: readInt(&last)}, Call{Statement: qPauses, Read: into(&all, pauses)})
	return all, last, store.Failed(err, "read pauses")
}

func (s Reader) PauseHistory(ctx context.Context, of store.PauseKind, name string, below int64, n int) ([]store.Pause, error) {
	below = cmp.Or(below, math.MaxInt64)
	c := Call{Statement: qPauseHistory, Args: []any{below, int(of), name, n}}
	return list(ctx, s, c, pauses, "read the history of pauses")
}
