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
	qKept    = sql(`SELECT origin, at, expires, output FROM kept WHERE hash = ? AND expires > ? AND coalesce(length(output), 0) <= ?`)
	qKeepOne = sql(`INSERT OR REPLACE INTO kept (hash, origin, at, expires, output) VALUES (?, ?, ?, ?, ?)`)
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

// keep writes outcomes into the cache.
func (t *tx) keep(d *store.Delta) error {
	for i := range d.Kept {
		k := &d.Kept[i]
		if err := t.c.use(qKeepOne).blob(k.Hash[:]).id(k.Origin).int(row.Micros(k.At)).int(row.Micros(k.Expires)).blob(k.Output).run(); err != nil {
			return fmt.Errorf("keep the outcome of %s: %w", k.Origin, err)
		}
	}
	return nil
}
