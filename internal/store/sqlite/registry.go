package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// registry are the statements of one table of names.
type registry struct{ add, has, page *query }

func registryOf(table string) registry {
	return registry{
		add:  sql(`INSERT INTO ` + table + ` (name, created_at) VALUES (?, ?)`),
		has:  sql(`SELECT 1 FROM ` + table + ` WHERE name = ?`),
		page: sql(`SELECT name FROM ` + table + ` WHERE name > ? ORDER BY name LIMIT ?`),
	}
}

var registries = map[store.NameKind]registry{
	store.QueueNames: registryOf("queues"), store.LaneNames: registryOf("lanes"), store.LanguageNames: registryOf("languages"),
}

var (
	qKeepSetting = sql(`INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING`)
	qSetting     = sql(`SELECT value FROM settings WHERE name = ?`)
)

func (c *conn) hasName(of store.NameKind, name string) (bool, error) {
	s := c.use(registries[of].has).text(name)
	has := s.next()
	return has, s.done()
}

// AddName implements store.Registry.
func (t *tx) AddName(_ context.Context, of store.NameKind, name string, at time.Time) (bool, error) {
	has, err := t.c.hasName(of, name)
	if err == nil && !has {
		err = t.c.use(registries[of].add).text(name).int(row.Micros(at)).run()
	}
	if err != nil {
		return false, fmt.Errorf("add name %q: %w", name, err)
	}
	return !has, nil
}

// KeepSetting implements store.Registry.
func (t *tx) KeepSetting(_ context.Context, name string, value []byte) error {
	return store.Failed(t.c.use(qKeepSetting).text(name).text(string(value)).run(), "keep setting %q", name)
}

// HasName implements store.RegistryReader.
func (s *Store) HasName(ctx context.Context, of store.NameKind, name string) (has bool, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		has, err = c.hasName(of, name)
		return err
	})
	return store.Result(has, err, "look up name %q", name)
}

// Names implements store.RegistryReader.
func (s *Store) Names(ctx context.Context, of store.NameKind, after string, n int) (all []string, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.use(registries[of].page).text(after).int(int64(n))
		for q.next() {
			all = append(all, q.getText())
		}
		return q.done()
	})
	return store.Result(all, err, "read names")
}

// Setting implements store.RegistryReader.
func (s *Store) Setting(ctx context.Context, name string) (value []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.use(qSetting).text(name)
		found := q.next()
		if found {
			value = []byte(q.getText())
		}
		if err := q.done(); err != nil || found {
			return err
		}
		return store.ErrNotFound
	})
	return store.Result(value, err, "read setting %q", name)
}
