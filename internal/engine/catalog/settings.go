package catalog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/store"
)

// Persist runs a transaction outside the committer, and repeats it if another replica was faster: replicas that start on an empty store
// declare the same things at the same time.
func Persist(ctx context.Context, s store.Store, decide func(context.Context, store.Tx) error) error {
	return store.Repeat(func(int) error { return s.Update(ctx, decide) })
}

// PersistNames adds names to a registry of the store, in one transaction. It sorts them, so that replicas that add the same names do not
// deadlock.
func PersistNames(ctx context.Context, s store.Store, to store.NameKind, names ...string) error {
	return Persist(ctx, s, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := tx.AddName(ctx, to, name, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// workerKeyName is the setting that holds the key of WorkerKey.
const workerKeyName = "worker_key"

// WorkerKey is a random key for the tokens of workers, shared by all replicas on the store.
func (c *Catalog) WorkerKey(ctx context.Context) ([]byte, error) {
	return c.SharedKey(ctx, workerKeyName)
}

// SharedKey is a random key with a name, shared by all replicas on the store. The replica that asks first makes it.
func (c *Catalog) SharedKey(ctx context.Context, name string) ([]byte, error) {
	doc, err := c.store.Setting(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		fresh := make([]byte, 32)
		rand.Read(fresh) // never fails on the systems that Go supports
		if doc, err = json.Marshal(fresh); err == nil {
			err = Persist(ctx, c.store, func(ctx context.Context, tx store.Tx) error { return tx.KeepSetting(ctx, name, doc) })
		}
		if err == nil {
			doc, err = c.store.Setting(ctx, name)
		}
	}
	var key []byte
	if err == nil {
		err = json.Unmarshal(doc, &key)
	}
	if err != nil {
		return nil, fmt.Errorf("load the key %s: %w", name, err)
	}
	return key, nil
}
