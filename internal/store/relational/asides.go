package relational

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var asides = Relation[store.Aside]{
	number("kind", Int2, func(a *store.Aside) *store.AsideKind { return &a.Kind }),
	id("id", func(a *store.Aside) *flow.ID { return &a.ID }),
	moment("until", func(a *store.Aside) *time.Time { return &a.Until }),
	number("times", Int4, func(a *store.Aside) *int { return &a.Times }),
	text("reason", func(a *store.Aside) *string { return &a.Reason }),
}

var (
	qPutAsides = sql(func(d dialect) string { return asides.upsert(d, "asides", "kind", "id") })
	qAside     = same(`SELECT ` + asides.names("") + ` FROM {s}.asides WHERE kind = $1::bigint AND id = $2`)
)

// putAsides records signals and waits that are put aside.
func (t Tx) putAsides(ctx context.Context, all []store.Aside) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b store.Aside) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return queue(ctx, t, qPutAsides, asides, all, "put %d signals and waits aside")
}

func (s Reader) Aside(ctx context.Context, kind store.AsideKind, id flow.ID) (flow.Aside, error) {
	a, err := one(ctx, s, Call{Statement: qAside, Args: []any{int(kind), id}}, asides, "look whether %s is put aside", id)
	return a.Aside, err
}
