package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var asides = relation[*store.Aside, *store.Aside]{
	{"kind", oidInt2, func(c *column, a *store.Aside) { c.int(int64(a.Kind)) }, func(r *rows, a *store.Aside) { a.Kind = store.AsideKind(r.int()) }},
	{"id", oidUUID, func(c *column, a *store.Aside) { c.id(a.ID) }, func(r *rows, a *store.Aside) { a.ID = r.id() }},
	{"until", oidInt8, func(c *column, a *store.Aside) { c.int(row.Micros(a.Until)) }, func(r *rows, a *store.Aside) { a.Until = r.time() }},
	{"times", oidInt4, func(c *column, a *store.Aside) { c.int(int64(a.Times)) }, func(r *rows, a *store.Aside) { a.Times = int(r.int()) }},
	{"reason", oidText, func(c *column, a *store.Aside) { c.text(a.Reason) }, func(r *rows, a *store.Aside) { a.Reason = r.text() }},
}

var (
	qPutAsides = sql(asides.insert("asides") + ` ON CONFLICT (kind, id) DO UPDATE SET until = excluded.until, times = excluded.times, reason = excluded.reason`)

	qAside = sql(`SELECT ` + asides.names("") + ` FROM {s}.asides WHERE kind = $1::bigint AND id = $2`)
)

// putAsides writes which signals and waits are put aside.
func (t *tx) putAsides(all []store.Aside) {
	all = slices.SortedFunc(slices.Values(all), func(a, b store.Aside) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.ID[:], b.ID[:]))
	})
	t.put(qPutAsides, columnsOf(asides, all))
}

// Aside implements store.AsideReader.
func (s *Store) Aside(ctx context.Context, kind store.AsideKind, id flow.ID) (flow.Aside, error) {
	a, err := one(ctx, s, qAside, new(args).int(int64(kind)).id(id), asides, "look whether %s is put aside", id)
	return a.Aside, err
}
