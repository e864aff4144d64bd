package postgres

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// registry are the statements of one table of names.
type registry struct{ add, has, page *query }

func registryOf(table string) registry {
	return registry{
		add:  sql(`INSERT INTO {s}.` + table + ` (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1`),
		has:  sql(`SELECT 1 FROM {s}.` + table + ` WHERE name = $1`),
		page: sql(`SELECT name FROM {s}.` + table + ` WHERE name > $1 ORDER BY name LIMIT $2`),
	}
}

var registries = map[store.NameKind]registry{
	store.QueueNames: registryOf("queues"), store.LaneNames: registryOf("lanes"), store.LanguageNames: registryOf("languages"),
}

var (
	qKeepSetting = sql(`INSERT INTO {s}.settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
	qSetting     = sql(`SELECT value FROM {s}.settings WHERE name = $1`)
)

// AddName implements store.Registry.
func (t *tx) AddName(ctx context.Context, of store.NameKind, name string, at time.Time) (added bool, err error) {
	err = t.ask(ctx, registries[of].add, t.args().text(name).int(row.Micros(at)), func(*rows) error {
		added = true
		return nil
	})
	return store.Result(added, err, "add name %q", name)
}

// KeepSetting implements store.Registry.
func (t *tx) KeepSetting(ctx context.Context, name string, value []byte) error {
	return store.Failed(t.ask(ctx, qKeepSetting, t.args().text(name).bytes(value), nil), "keep setting %q", name)
}

// HasName implements store.RegistryReader.
func (s *Store) HasName(ctx context.Context, of store.NameKind, name string) (has bool, err error) {
	err = s.read(ctx, call{q: registries[of].has, params: new(args).text(name).params, read: func(*rows) error {
		has = true
		return nil
	}})
	return store.Result(has, err, "look up name %q", name)
}

// Names implements store.RegistryReader.
func (s *Store) Names(ctx context.Context, of store.NameKind, after string, n int) (all []string, err error) {
	err = s.read(ctx, call{q: registries[of].page, params: new(args).text(after).int(int64(n)).params, read: readAll(&all, (*rows).text)})
	return store.Result(all, err, "read names")
}

// Setting implements store.RegistryReader.
func (s *Store) Setting(ctx context.Context, name string) (value []byte, err error) {
	err = s.read(ctx, call{q: qSetting, params: new(args).text(name).params, read: readTo(&value, (*rows).bytes)})
	if err == nil && value == nil {
		err = store.ErrNotFound
	}
	return store.Result(value, err, "read setting %q", name)
}
