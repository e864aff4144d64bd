package sqlite

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qKept        = sql(`SELECT origin, at, expires, output FROM kept WHERE hash = ? AND expires > ? AND coalesce(length(output), 0) <= ?`)
	qKeepOne     = sql(`INSERT OR REPLACE INTO kept (hash, origin, at, expires, output) VALUES (?, ?, ?, ?, ?)`)
	qDropExpired = sql(`DELETE FROM kept WHERE hash IN (SELECT hash FROM kept WHERE expires < ? ORDER BY expires LIMIT ?)`)
	qTrimKept    = sql(`DELETE FROM kept WHERE hash IN (SELECT hash FROM kept ORDER BY expires LIMIT min(?, max(0, (SELECT count(*) FROM kept) - ?)))`)
)

// Kept implements store.Cache.
func (t *tx) Kept(_ context.Context, hashes [][sha256.Size]byte, at time.Time, most int64) (map[[sha256.Size]byte]store.Kept, error) {
	all := make(map[[sha256.Size]byte]store.Kept, len(hashes))
	for _, hash := range hashes {
		if _, twice := all[hash]; twice {
			continue
		}
		s := t.c.use(qKept).blob(hash[:]).int(row.Micros(at)).int(most)
		if s.next() {
			k := store.Kept{Hash: hash, Origin: s.getID(), At: row.FromMicros(s.getInt()), Expires: row.FromMicros(s.getInt())}
			k.Output = s.getBlob()
			most -= int64(len(k.Output))
			all[hash] = k
		}
		if err := s.done(); err != nil {
			return nil, fmt.Errorf("look for kept outcomes: %w", err)
		}
	}
	return all, nil
}

// Keep implements store.Cache.
func (t *tx) Keep(_ context.Context, all []store.Kept) error {
	for i := range all {
		k := &all[i]
		if err := t.c.use(qKeepOne).blob(k.Hash[:]).id(k.Origin).int(row.Micros(k.At)).int(row.Micros(k.Expires)).blob(k.Output).run(); err != nil {
			return fmt.Errorf("keep the outcome of %s: %w", k.Origin, err)
		}
	}
	return nil
}

// DropKept implements store.Cache.
func (t *tx) DropKept(_ context.Context, before time.Time, most, n int) (int, error) {
	if err := t.c.use(qDropExpired).int(row.Micros(before)).int(int64(n)).run(); err != nil {
		return 0, fmt.Errorf("drop kept outcomes: %w", err)
	}
	dropped := int(t.c.changes())
	if dropped == n {
		return dropped, nil
	}
	if err := t.c.use(qTrimKept).int(int64(n - dropped)).int(int64(most)).run(); err != nil {
		return 0, fmt.Errorf("drop kept outcomes: %w", err)
	}
	return dropped + int(t.c.changes()), nil
}
