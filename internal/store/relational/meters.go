package relational

import (
	"cmp"
	"context"
	"slices"
	"time"
)

type meter struct {
	key string
	tat time.Time
}

var meters = Relation[meter]{
	text("key", func(m *meter) *string { return &m.key }),
	moment("tat", func(m *meter) *time.Time { return &m.tat }),
}

// keys are texts for look-ups.
var keys = Relation[string]{text("key", func(s *string) *string { return s })}

var (
	qMeters = sql(func(d dialect) string {
		return `SELECT ` + meters.names("") + ` FROM {s}.meters WHERE ` + d.in("key", Text)
	})
	qPutMeters = sql(func(d dialect) string { return meters.upsert(d, "meters", "key") })
)

func (t Tx) Meters(ctx context.Context, of []string) (map[string]time.Time, error) {
	found, err := list(ctx, t, Call{Statement: qMeters, Rows: keys.input(of)}, meters, "read %d meters", len(of))
	if err != nil {
		return nil, err
	}
	all := make(map[string]time.Time, len(found))
	for _, m := range found {
		all[m.key] = m.tat
	}
	return all, nil
}

func (t Tx) putMeters(ctx context.Context, of map[string]time.Time) error {
	all := make([]meter, 0, len(of))
	for key, tat := range of {
		all = append(all, meter{key, tat})
	}
	slices.SortFunc(all, func(a, b meter) int { return cmp.Compare(a.key, b.key) })
	return write(ctx, t, qPutMeters, meters, all, "write %d meters")
}
