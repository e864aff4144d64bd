package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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

// metersOf are meters as rows, sorted by key.
func metersOf(all map[string]time.Time) []meter {
	list := make([]meter, 0, len(all))
	for key, tat := range all {
		list = append(list, meter{key, tat})
	}
	slices.SortFunc(list, func(a, b meter) int { return cmp.Compare(a.key, b.key) })
	return list
}
