package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// meter is a row of meters.
type meter struct {
	key string
	tat time.Time
}

var meters = relation[*meter, *meter]{
	{"key", oidText, func(c *column, m *meter) { c.text(m.key) }, func(r *rows, m *meter) { m.key = r.text() }},
	{"tat", oidInt8, func(c *column, m *meter) { c.int(row.Micros(m.tat)) }, func(r *rows, m *meter) { m.tat = r.time() }},
}

var (
	qMeters = sql(`SELECT ` + meters.names("") + ` FROM {s}.meters WHERE key = ANY ($1::text[])`)

	qPutMeters = sql(meters.insert("meters") + ` ON CONFLICT (key) DO UPDATE SET tat = excluded.tat`)

	qDropMeters = sql(`DELETE FROM {s}.meters m USING (SELECT key FROM {s}.meters WHERE tat < $1::bigint ORDER BY tat LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("m.key", "v.key") + ` RETURNING 1`)

	// Keys of executions do not begin with "@". A lock that a transaction holds is one that is in use.
	qLocks = sql(`SELECT key FROM {s}.keys WHERE key > $1 AND key < 'A' AND key >= '@' ORDER BY key LIMIT $2`)

	qDropLocks = sql(`DELETE FROM {s}.keys WHERE key = ANY (ARRAY(SELECT k.key FROM {s}.keys k WHERE k.key = ANY ($1::text[])
			AND (SELECT true FROM {s}.meters m WHERE starts_with(k.key, '` + store.MeterLock + `') AND m.key = substr(k.key, ` + fmt.Sprint(len(store.MeterLock)+1) + `)) IS NULL
			AND (SELECT true FROM {s}.windows w WHERE starts_with(k.key, '` + store.WindowLock + `') AND w.rule = split_part(k.key, ':', 2)
				AND w.key = substr(k.key, ` + fmt.Sprint(len(store.WindowLock)+2) + ` + length(split_part(k.key, ':', 2)))) IS NULL
		ORDER BY k.key FOR UPDATE SKIP LOCKED))`)
)

// Meters implements store.Meters.
func (t *tx) Meters(ctx context.Context, keys []string) (map[string]time.Time, error) {
	var found []meter
	if err := t.ask(ctx, qMeters, t.args().texts(keys), readInto(&found, meters)); err != nil {
		return nil, fmt.Errorf("read %d meters: %w", len(keys), err)
	}
	all := make(map[string]time.Time, len(found))
	for _, m := range found {
		all[m.key] = m.tat
	}
	return all, nil
}

// PutMeters implements store.Meters.
func (t *tx) PutMeters(ctx context.Context, all map[string]time.Time) error {
	list := make([]*meter, 0, len(all))
	for key, tat := range all {
		list = append(list, &meter{key, tat})
	}
	slices.SortFunc(list, func(a, b *meter) int { return cmp.Compare(a.key, b.key) })
	if len(list) == 0 {
		return nil
	}
	if err := t.ask(ctx, qPutMeters, t.args().columns(meters.columns(list...)), nil); err != nil {
		return fmt.Errorf("write %d meters: %w", len(all), err)
	}
	return nil
}

// DropMeters implements store.Meters.
func (t *tx) DropMeters(ctx context.Context, before time.Time, n int) (dropped int, err error) {
	err = t.ask(ctx, qDropMeters, t.args().int(row.Micros(before)).int(int64(n)), func(*rows) error {
		dropped++
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("drop meters: %w", err)
	}
	return dropped, nil
}

// DropLocks implements store.Meters.
func (t *tx) DropLocks(ctx context.Context, after string, n int) (last string, err error) {
	var locks []string
	err = t.ask(ctx, qLocks, t.args().text(after).int(int64(n)), func(r *rows) error {
		locks = append(locks, r.text())
		return nil
	})
	if err == nil && len(locks) > 0 {
		err = t.ask(ctx, qDropLocks, t.args().texts(locks), nil)
	}
	if err != nil {
		return "", fmt.Errorf("drop the locks of meters and windows: %w", err)
	}
	if len(locks) < n {
		return "", nil
	}
	return locks[n-1], nil
}
