package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

type hash = [sha256.Size]byte

func hashOf(text string) hash { return sha256.Sum256([]byte(text)) }

// kept returns the outcomes in the cache under texts.
func (b *bench) kept(at time.Time, most int64, texts ...string) map[hash]store.Kept {
	b.Helper()
	var hashes []hash
	for _, text := range texts {
		hashes = append(hashes, hashOf(text))
	}
	return inTx(b, func(ctx context.Context, t store.Tx) (map[hash]store.Kept, error) {
		return t.Kept(ctx, hashes, at, most)
	})
}

func (b *bench) keep(all ...store.Kept) {
	b.Helper()
	must(b, b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error { return t.Apply(ctx, store.Delta{Kept: all}) }))
}

// keptOutcomes checks the outcomes in the cache: by hash, until they expire, even after their execution was removed, and within the allowed
// number.
func keptOutcomes(b *bench) {
	wf := b.workflow()
	cache := &flow.Cache{Hash: hashOf("a"), TTL: time.Hour}
	d := b.submit(under(wf, "t", 0), func(r *flow.Request) { r.Cache = cache })
	b.apply(d)
	equal(b, "the request", b.get(d.ID).Cache, cache)
	of := b.completed(wf, "u", 0, `{"n":1}`)
	entry := func(text, output string, left time.Duration) store.Kept {
		return store.Kept{Hash: hashOf(text), Origin: of, At: b.now, Expires: b.now.Add(left), Output: raw("%s", output)}
	}
	a, c := entry("a", `{"n":1}`, time.Hour), entry("c", `{"n":1}`, time.Minute)
	null := entry("null", "", 2*time.Hour)
	null.Output = nil
	b.keep(a, c)
	b.keep()
	b.clean()
	equal(b, "kept", b.kept(b.now, 1<<20, "a", "b", "c", "a"), map[hash]store.Kept{a.Hash: a, c.Hash: c})
	equal(b, "kept when one has expired", b.kept(c.Expires, 1<<20, "a", "c"), map[hash]store.Kept{a.Hash: a})
	equal(b, "kept within few bytes", len(b.kept(b.now, 7, "a", "c")), 1)
	equal(b, "kept within no bytes", len(b.kept(b.now, 0, "a", "c")), 0)
	later := a
	later.Expires = later.Expires.Add(3 * time.Hour)
	b.keep(a, later, null)
	equal(b, "kept anew, and null", b.kept(b.now, 1<<20, "a", "null"), map[hash]store.Kept{a.Hash: later, null.Hash: null})

	drop := func(before time.Time, most, n int) int {
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropKept(ctx, before, most, n) })
	}
	equal(b, "nothing has expired", drop(c.Expires, 10, 5), 0)
	equal(b, "one has expired", drop(c.Expires.Add(time.Second), 10, 5), 1)
	equal(b, "what expires first is one too many", drop(b.now, 1, 5), 1)
	equal(b, "the one that is left", b.kept(b.now, 1<<20, "a", "c", "null"), map[hash]store.Kept{a.Hash: later})
	for i := range 5 {
		b.keep(entry(fmt.Sprint(i), `{"n":1}`, time.Duration(i+1)*time.Second))
	}
	equal(b, "no more than asked for", drop(b.now.Add(time.Minute), 10, 2), 2)
	equal(b, "the rest", drop(b.now.Add(time.Minute), 10, 9), 3)

	gone := entry("gone", `1`, time.Hour)
	gone.Origin = b.id()
	b.keep(gone)
	b.clean()
}

// keptViolations checks that Check finds a cached outcome that differs from its origin's, and the executions that used it.
func keptViolations(b *bench) {
	wf := b.workflow()
	of := b.completed(wf, "u", 0, `{"n":1}`)
	hit := b.submit(under(wf, "v", 0), func(r *flow.Request) { r.ReusedOf, r.Cache = of, &flow.Cache{Hash: hashOf("a"), TTL: time.Hour} })
	must(b, hit.Reuse(raw(`{"n":1}`), b.now))
	b.apply(hit)
	b.broken(67, "an outcome of one with another hash", hit.ID)
	b.keep(store.Kept{Hash: hashOf("wrong"), Origin: of, At: b.now, Expires: b.now.Add(time.Hour), Output: raw(`{"n":2}`)})
	b.broken(67, "another output is kept", of)
}

// racingKept lets transactions cache outcomes of the same hashes in different orders.
func racingKept(b *bench) {
	of := b.completed(b.workflow(), "t", 0, `1`)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 20 {
				entries := make([]store.Kept, 0, 10)
				for k := range 10 {
					entries = append(entries, store.Kept{Hash: hashOf(fmt.Sprint((k*(i+1) + n) % 10)), Origin: of, At: b.now, Expires: b.now.Add(time.Hour), Output: raw("1")})
				}
				if err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error { return t.Apply(ctx, store.Delta{Kept: entries}) }); err != nil {
					b.Errorf("keep: %v", err)
				}
			}
		})
	}
	all.Wait()
	equal(b, "kept", len(b.kept(b.now, 1<<20, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")), 10)
}
