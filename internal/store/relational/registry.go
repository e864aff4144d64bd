package relational

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// registry has the statements of one table of names.
type registry struct{ add, has, page *Statement }

func registryOf(table string) registry {
	return registry{
		add:  same(`INSERT INTO {s}.` + table + ` (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1`),
		has:  same(`SELECT 1 FROM {s}.` + table + ` WHERE name = $1`),
		page: same(`SELECT name FROM {s}.` + table + ` WHERE name > $1 ORDER BY name LIMIT $2`),
	}
}

var registries = map[store.NameKind]registry{
	store.QueueNames: registryOf("queues"), store.RoutingKeyNames: registryOf("lanes"), store.LanguageNames: registryOf("languages"),
}

var (
	qKeepSetting = same(`INSERT INTO {s}.settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
	qSetting     = same(`SELECT value FROM {s}.settings WHERE name = $1`)
)

func (t Tx) AddName(ctx context.Context, of store.NameKind, name string, at time.Time) (bool, error) {
	added, err := someRow(ctx, t, registries[of].add, name, at)
	return store.Result(added, err, "add name %q", name)
}

func (t Tx) KeepSetting(ctx context.Context, name string, value []byte) error {
	return store.Failed(t.Run(ctx, Call{Statement: qKeepSetting, Args: []any{name, string(value)}}), "keep setting %q", name)
}

func (s Reader) HasName(ctx context.Context, of store.NameKind, name string) (bool, error) {
	has, err := someRow(ctx, s, registries[of].has, name)
	return store.Result(has, err, "look up name %q", name)
}

func someRow(ctx context.Context, q Querier, of *Statement, args ...any) (has bool, err error) {
	err = q.Run(ctx, Call{Statement: of, Args: args, Read: func(Row) error {
		has = true
		return ErrEnough
	}})
	return has, err
}

func (s Reader) Names(ctx context.Context, of store.NameKind, after string, n int) (all []string, err error) {
	err = s.Run(ctx, Call{Statement: registries[of].page, Args: []any{after, n}, Read: func(r Row) error {
		all = append(all, textOf(r))
		return nil
	}})
	return store.Result(all, err, "read names")
}

func (s Reader) Setting(ctx context.Context, name string) (value []byte, err error) {
	err = s.Run(ctx, Call{Statement: qSetting, Args: []any{name}, Read: func(r Row) error {
		value = bytesOf(r)
		return nil
	}})
	if err == nil && value == nil {
		err = store.ErrNotFound
	}
	return store.Result(value, err, "read setting %q", name)
}
