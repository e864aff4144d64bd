package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	// keptBytes is the largest output that is kept for other executions: a step looks up the outcomes of all items that it creates.
	keptBytes = 64 << 10
	// keptAtOnce bounds the kept outputs that the submissions of one transaction use, because it writes them again. 1,000 submissions can use
	// outputs of 8 KB on average; of outputs of 64 KB, 128 can be used, and the other submissions run.
	keptAtOnce = 8 << 20
	// keptMost is how many outcomes are kept; beyond it, the first to expire are removed first. With outputs of 1 KB they take 200 MB.
	keptMost = 200_000
)

// childRequest is the request of a child that a step creates. If override, reuse or kept is set, the child ends with that output and does
// not run.
type childRequest struct {
	request  flow.Request
	refusal  *flow.Error     // why it cannot run
	override []byte          // by the client of a rerun
	reuse    *store.Reusable // from the original of a rerun
	kept     *store.Kept     // from the cache
}

// cacheOf is the cache entry for the outcome of a child; nil: it is not kept. Without a cache key its hash covers what a rerun compares:
// the work with all expressions evaluated, and its input. A cache key replaces the input, for one task of one workflow version and one
// version of the action: versions do not share outcomes. The definition refuses a cache for built-in kinds whose outcome depends on the
// time. If a task names an action, only this function sees that the action asks, waits, sleeps or reruns: such an outcome is not kept.
func (s *step) cacheOf(c *orchestration.Child, r *flow.Request) *flow.Cache {
	if c.Task.Cache == nil || r.Kind.NotCacheable() {
		return nil
	}
	hash := hashOfWork(r)
	if c.CacheKey != nil {
		hash = sha256.Sum256(fmt.Appendf(nil, "key %q@%d %q %q@%d %q %q", s.w.Action, s.w.Version, c.Task.Name, r.Action, r.Version, r.Kind, *c.CacheKey))
	}
	return &flow.Cache{Hash: hash, TTL: c.Task.Cache.TTL}
}

// hashOfWork is the hash for the outcome of a request without a cache key: tasks and submissions share it.
func hashOfWork(r *flow.Request) [sha256.Size]byte {
	sum := workOf(r).Sum()
	return sha256.Sum256(append([]byte("work "), sum[:]...))
}

// of is the cache entry for the outcome of a submission. A cache key replaces the input, for one version of an action.
func (c *Cache) of(r *flow.Request) *flow.Cache {
	hash := hashOfWork(r)
	if c.Key != nil {
		hash = sha256.Sum256(fmt.Appendf(nil, "submitted with key %q@%d %q %q", r.Action, r.Version, r.Kind, *c.Key))
	}
	return &flow.Cache{Hash: hash, TTL: c.TTL}
}

// keptOutcomes are kept outcomes that the submissions of a transaction may use.
type keptOutcomes struct {
	wanted [][sha256.Size]byte
	found  map[[sha256.Size]byte]store.Kept
}

func (t *transaction) loadKept(ctx context.Context) (err error) {
	if k := txn.MadePart[keptOutcomes](t); k != nil {
		k.found, err = t.tx.Kept(ctx, k.wanted, t.now, keptAtOnce)
	}
	return err
}

// cachedOutcome is the kept outcome for a submission, if there is one that is not too old.
func (t *transaction) cachedOutcome(o *submitOp) (store.Kept, bool) {
	if !o.cached {
		return store.Kept{}, false
	}
	k, ok := txn.Part[keptOutcomes](t).found[o.request.Cache.Hash]
	return k, ok && t.now.Sub(k.At) < o.request.Cache.TTL
}

// lookUp finds kept outcomes for the children that have a cache, in one query.
func (s *step) lookUp(ctx context.Context, all []childRequest) error {
	var hashes [][sha256.Size]byte
	for i := range all {
		if r := &all[i].request; r.Cache != nil && !r.NoCache {
			hashes = append(hashes, r.Cache.Hash)
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	found, err := s.t.tx.Kept(ctx, hashes, s.t.now, int64(max(0, s.t.budget.Bytes)))
	if err != nil || len(found) == 0 {
		return err
	}
	for i := range all {
		r := &all[i].request
		if r.Cache == nil || r.NoCache {
			continue
		}
		if k, ok := found[r.Cache.Hash]; ok && s.t.now.Sub(k.At) < r.Cache.TTL {
			all[i].kept, r.ReusedOf = &k, k.Origin
			s.t.budget.Spend(0, len(k.Output))
		}
	}
	return nil
}

// keepOutcomes keeps the outcomes of completed executions for other executions with the same work. Outputs that name files are not kept:
// the files are removed with their execution.
func (t *transaction) keepOutcomes(context.Context) error {
	for i, d := range t.changes.drafts {
		if d.Cache == nil || !d.Ended() || t.deferred(d) || slices.Contains(t.changes.drafts[:i], d) {
			continue
		}
		if d.Stage != flow.Completed || !d.ReusedOf.IsZero() || d.RunsPart() || d.Outcome == nil || len(d.Outcome.Output) > keptBytes || namesFiles(d.Outcome.Output) {
			continue
		}
		rows := t.changes.add()
		rows.Kept = append(rows.Kept, store.Kept{Hash: d.Cache.Hash, Origin: d.ID, At: d.FinishedAt, Expires: d.FinishedAt.Add(d.Cache.TTL), Output: d.Outcome.Output})
	}
	return nil
}
