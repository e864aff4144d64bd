package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var keptRows = relation[*store.Kept, *store.Kept]{
	{"hash", oidBytes, func(c *column, k *store.Kept) { c.bytes(k.Hash[:]) }, func(r *rows, k *store.Kept) { copy(k.Hash[:], r.peek()) }},
	{"origin", oidUUID, func(c *column, k *store.Kept) { c.id(k.Origin) }, func(r *rows, k *store.Kept) { k.Origin = r.id() }},
	{"at", oidInt8, func(c *column, k *store.Kept) { c.int(row.Micros(k.At)) }, func(r *rows, k *store.Kept) { k.At = r.time() }},
	{"expires", oidInt8, func(c *column, k *store.Kept) { c.int(row.Micros(k.Expires)) }, func(r *rows, k *store.Kept) { k.Expires = r.time() }},
	{"output", oidBytes, func(c *column, k *store.Kept) { c.bytesOrNull(k.Output) }, func(r *rows, k *store.Kept) { k.Output = r.bytes() }},
}

// sought is a hash to look up.
var sought = relation[*[sha256.Size]byte, none]{
	{"hash", oidBytes, func(c *column, h *[sha256.Size]byte) { c.bytes(h[:]) }, nil},
}

var (
	// PostgreSQL tells the length of a value stored out of line without reading it.
	qKept = sql(`SELECT hash, origin, at, expires, output FROM (SELECT k.*, sum(coalesce(octet_length(k.output), 0)) OVER (ORDER BY k.hash) AS size
		FROM ` + sought.rows() + ` AS v CROSS JOIN LATERAL (SELECT * FROM {s}.kept k WHERE k.hash = v.hash OFFSET 0) k WHERE k.expires > $2::bigint) k WHERE size <= $3::bigint`)

	qKeepAll = sql(keptRows.insert("kept") + ` ON CONFLICT (hash) DO UPDATE SET origin = excluded.origin, at = excluded.at, expires = excluded.expires, output = excluded.output`)
)

// Kept implements store.Cache.
func (t *tx) Kept(ctx context.Context, hashes [][sha256.Size]byte, at time.Time, most int64) (map[[sha256.Size]byte]store.Kept, error) {
	hashes = slices.SortedFunc(slices.Values(hashes), func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	var cols columns
	sought.begin(&cols)
	for i := range slices.Compact(hashes) {
		sought.add(&cols, &hashes[i])
	}
	var found []store.Kept
	if err := t.ask(ctx, qKept, t.args().columns(&cols).int(row.Micros(at)).int(most), readInto(&found, keptRows)); err != nil {
		return nil, fmt.Errorf("look for kept outcomes: %w", err)
	}
	all := make(map[[sha256.Size]byte]store.Kept, len(found))
	for _, k := range found {
		all[k.Hash] = k
	}
	return all, nil
}

// insertKept writes the outcomes to keep, last and sorted: inserting one waits for a transaction that has written the same
// hash. If a hash occurs several times, the last one counts.
func (t *tx) insertKept() {
	if len(t.outcomes) == 0 {
		return
	}
	slices.SortStableFunc(t.outcomes, func(a, b store.Kept) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	var cols columns
	keptRows.begin(&cols)
	for i := range t.outcomes {
		if i+1 == len(t.outcomes) || t.outcomes[i+1].Hash != t.outcomes[i].Hash {
			keptRows.add(&cols, &t.outcomes[i])
		}
	}
	t.put(qKeepAll, &cols)
	t.outcomes = nil
}
