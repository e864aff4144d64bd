package storetest

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// meters checks that meters are kept by their keys, replaced, and dropped when their moments have passed.
func meters(b *bench) {
	at := func(minutes int) time.Time { return b.now.Add(time.Duration(minutes) * time.Minute) }
	put := func(all map[string]time.Time) {
		b.Helper()
		b.update(func(ctx context.Context, t store.Tx) error {
			var locks []string
			for key := range all {
				locks = append(locks, store.MeterLock+key)
			}
			if _, err := t.LockKeys(ctx, locks); err != nil {
				return err
			}
			return t.PutMeters(ctx, all)
		})
	}
	read := func(keys ...string) map[string]time.Time {
		return inTx(b, func(ctx context.Context, t store.Tx) (map[string]time.Time, error) { return t.Meters(ctx, keys) })
	}
	put(map[string]time.Time{"a": at(1), "b": at(2), "é/${{ }}": at(3)})
	put(map[string]time.Time{"b": at(5)})
	put(nil)
	equal(b, "meters", read("a", "b", "é/${{ }}", "none"), map[string]time.Time{"a": at(1), "b": at(5), "é/${{ }}": at(3)})
	drop := func(before time.Time, n int) int {
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropMeters(ctx, before, n) })
	}
	equal(b, "dropped of two", drop(at(4), 1), 1)
	equal(b, "the earliest went first", read("a", "é/${{ }}"), map[string]time.Time{"é/${{ }}": at(3)})
	equal(b, "dropped", drop(at(4), 10), 1)
	equal(b, "dropped again", drop(at(4), 10), 0)
	put(map[string]time.Time{"a": at(9)})
	equal(b, "left", read("a", "b"), map[string]time.Time{"a": at(9), "b": at(5)})
}
