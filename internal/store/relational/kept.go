package relational

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var kept = Relation[store.Kept]{
	sum("hash", func(k *store.Kept) *[sha256.Size]byte { return &k.Hash }),
	id("origin", func(k *store.Kept) *flow.ID { return &k.Origin }),
	moment("at", func(k *store.Kept) *time.Time { return &k.At }),
	moment("expires", func(k *store.Kept) *time.Time { return &k.Expires }),
	blob("output", Bytes, func(k *store.Kept) *json.RawMessage { return &k.Output }),
}

// hashes are hashes for look-ups.
var hashes = Relation[[sha256.Size]byte]{sum("hash", func(h *[sha256.Size]byte) *[sha256.Size]byte { return h })}

var (
	// Outputs are returned up to a total size. PostgreSQL, which answers for all hashes at once, knows the length of a value that is stored
	// out of line without reading it.
	qKept = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT ` + kept.names("") + ` FROM kept WHERE hash = ?1 AND expires > ?2 AND coalesce(length(output), 0) <= ?3`
		}
		return `SELECT ` + kept.names("") + ` FROM (SELECT k.*, sum(coalesce(octet_length(k.output), 0)) OVER (ORDER BY k.hash) AS size
			FROM ` + hashes.rows(d) + ` AS v CROSS JOIN LATERAL (SELECT * FROM {s}.kept k WHERE k.hash = v.hash OFFSET 0) k
			WHERE k.expires > $2::bigint) k WHERE size <= $3::bigint`
	})

	qPutKept = sql(func(d dialect) string { return kept.upsert(d, "kept", "hash") })

	qDropExpired = sql(func(d dialect) string {
		return d.dropOldest("kept", []string{"hash"}, `WHERE expires < $1::bigint`, "expires", "$2")
	})

	qTrimKept = sql(func(d dialect) string {
		least := "least"
		if d == sqlite {
			least = "min"
		}
		return d.dropOldest("kept", []string{"hash"}, "", "expires",
			least+`($1::bigint, `+d.greatest("0", "(SELECT count(*) FROM {s}.kept) - $2::bigint")+`)`)
	}).whole()
)

func (t Tx) Kept(ctx context.Context, of [][sha256.Size]byte, at time.Time, most int64) (map[[sha256.Size]byte]store.Kept, error) {
	of = slices.Compact(slices.SortedFunc(slices.Values(of), func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) }))
	all := make(map[[sha256.Size]byte]store.Kept, len(of))
	err := t.Run(ctx, Call{Statement: qKept, Rows: hashes.input(of), Args: []any{at, most}, Read: func(r Row) error {
		var k store.Kept
		err := kept.read(r, &k)
		if most -= int64(len(k.Output)); most < 0 {
			return ErrEnough
		}
		all[k.Hash] = k
		return err
	}})
	return store.Result(all, err, "look for kept outcomes")
}

// PutKept writes outcomes to the cache, sorted, because a write waits for a transaction that has written the same hash. If a hash occurs
// several times, the last one counts.
func (t Tx) PutKept(ctx context.Context, all []store.Kept) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b store.Kept) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	last := all[:0]
	for i := range all {
		if i+1 == len(all) || all[i+1].Hash != all[i].Hash {
			last = append(last, all[i])
		}
	}
	return queue(ctx, t, qPutKept, kept, last, "keep %d outcomes")
}

func (t Tx) DropKept(ctx context.Context, before time.Time, most, n int) (int, error) {
	expired, err := t.dropped(ctx, qDropExpired, before, n)
	if err != nil || expired == n {
		return expired, err
	}
	trimmed, err := t.dropped(ctx, qTrimKept, n-expired, most)
	return expired + trimmed, err
}
