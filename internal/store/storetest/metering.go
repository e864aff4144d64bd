package storetest

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// shares checks that shares of wait lists are stored separately by key, priority and owner, and dropped when no execution waits.
func shares(b *bench) {
	put := func(all ...store.Share) {
		b.Helper()
		b.update(func(ctx context.Context, t store.Tx) error {
			return t.Apply(ctx, store.Delta{Shares: store.ShareRows{Written: all}})
		})
	}
	read := func(key string, priority int, by string) [2]int64 {
		return inTx(b, func(ctx context.Context, t store.Tx) (of [2]int64, err error) {
			of[0], of[1], err = t.Shares(ctx, key, priority, by)
			return of, err
		})
	}
	put(store.Share{Key: "k", Clock: true, Tag: 5}, store.Share{Key: "k", By: "ada", Tag: 7}, store.Share{Key: "k", By: "", Tag: 8}, store.Share{Key: "k", Priority: -3, By: "ada", Tag: 1 << 40}, store.Share{Key: "l", By: "ada", Tag: 9})
	put(store.Share{Key: "k", By: "ada", Tag: 11})
	put()
	equal(b, "ada's", read("k", 0, "ada"), [2]int64{5, 11})
	equal(b, "nobody's", read("k", 0, ""), [2]int64{5, 8})
	equal(b, "a stranger's", read("k", 0, "eve"), [2]int64{5, 0})
	equal(b, "in another priority", read("k", -3, "ada"), [2]int64{0, 1 << 40})

	b.later(time.Minute)
	put(store.Share{Key: "young", By: "ada", Tag: 1, At: b.now})
	waits := b.submit(withKey("k", 1))
	must(b, waits.Wait(1, b.now))
	b.apply(waits)
	drop := func() int {
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropOld(ctx, store.OldShares, b.now, 10) })
	}
	equal(b, "dropped where nobody waits", drop(), 1)
	equal(b, "kept where it is young", read("young", 0, "ada"), [2]int64{0, 1})
	equal(b, "kept where an owner does", read("k", 0, "ada"), [2]int64{5, 11})
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Shares: store.ShareRows{Dropped: []string{"k", "none"}}})
	})
	equal(b, "dropped", read("k", 0, "ada"), [2]int64{})
}

// meters checks that meters are stored by their keys, replaced, and dropped when their times have passed.
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
			return t.Apply(ctx, store.Delta{Meters: all})
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
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropOld(ctx, store.OldMeters, before, n) })
	}
	equal(b, "dropped of two", drop(at(4), 1), 1)
	equal(b, "the earliest went first", read("a", "é/${{ }}"), map[string]time.Time{"é/${{ }}": at(3)})
	equal(b, "dropped", drop(at(4), 10), 1)
	equal(b, "dropped again", drop(at(4), 10), 0)
	put(map[string]time.Time{"a": at(9)})
	equal(b, "left", read("a", "b"), map[string]time.Time{"a": at(9), "b": at(5)})
}
