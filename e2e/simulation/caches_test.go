package simulation

import (
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// cacher has tasks whose outcomes are cached for tasks with the same work.
var cacher = sync.OnceValue(func() *document {
	return parsed(`name: cacher
input: {type: object, required: [n], properties: {n: {type: integer}}}
tasks:
  a: {action: noop, cache: {ttl: 30s}, with: {do: ok, v: "${{ input.n }}"}}
  b: {needs: [a], foreach: [1, 2], action: noop, cache: {ttl: 5s}, with: {do: flaky, v: "${{ item * 10 + input.n }}"}, retry: {max_attempts: 3, delay: 200ms}}
  c: {action: input, cache: {key: "${{ input.n }}", ttl: 10s}, with: {do: ok, v: "${{ 70 + input.n }}"}}
outputs: {b: "${{ tasks.b.output }}"}
`)
})

// caching is the share of workflows that are cachers.
func (p *plan) caching() float64 {
	if p.Caches {
		return 0.9
	}
	return 0.08
}

// cached judges a task, or a submission (p is nil), that ended with a cached outcome.
func (c *commit) cached(p, r *row, d *seen) {
	of := c.known(d.x.ReusedOf)
	why := ""
	if p == nil && r.asks.NoCache {
		why = "it is to run without the cache"
	}
	for w := p; w != nil; w = c.known(w.asks.Parent) {
		switch {
		case !w.asks.RerunOf.IsZero():
			why = "its workflow is a rerun, or part of one"
		case w.asks.NoCache:
			why = "its workflow is to run without the cache"
		}
	}
	switch {
	case why != "":
	case of == nil || of.x.Stage != flow.Completed:
		why = "that has not completed"
	case !of.x.ReusedOf.IsZero():
		why = "that did not run"
	case !sameWork(&of.asks, &d.x.Request): // of any task, submission, retry or rerun
		why = "that had something else to do"
	case d.x.CreatedAt.Sub(of.x.FinishedAt) >= d.x.Cache.TTL:
		why = "that is too old: it ended at " + of.x.FinishedAt.String()
	case d.x.Outcome == nil || string(d.x.Outcome.Output) != string(of.x.Outcome.Output):
		why = "that put out something else"
	}
	if why != "" {
		c.w.violate(67, "%s (%s[%d] of %s) ended with the kept outcome of %s, and %s", name(r.id), d.x.Task, d.x.Index, name(d.x.Parent), name(d.x.ReusedOf), why)
	}
}

// cacheBugs are planted bugs of the outcome cache.
var cacheBugs = []bug{
	{name: "outcome of another version is taken out of the cache", invariant: []int{67}, tune: cachingPlan, tx: twisted(twist{kept: func(t *twist, hashes [][32]byte, all map[[32]byte]store.Kept) {
		for _, hash := range hashes { // as if the hash did not cover what runs
			if _, ok := all[hash]; !ok && len(t.w.memory.kept) > 0 {
				all[hash] = t.w.memory.kept[0]
			}
		}
		for _, hash := range slices.SortedFunc(slices.Values(hashes), func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) }) {
			if k, ok := all[hash]; ok && k.Hash == hash {
				t.w.memory.kept = append(t.w.memory.kept, k)
			}
		}
	}})},
	{name: "outcome that has expired is taken out of the cache", invariant: []int{67}, tune: cachingPlan, tx: twisted(twist{kept: func(t *twist, _ [][32]byte, all map[[32]byte]store.Kept) {
		for hash, k := range all {
			k.At = t.w.now()
			all[hash] = k
		}
	}})},
	{name: "that there is to be no cache is forgotten", invariant: []int{67}, tune: cachingPlan, tx: twisted(twist{workflows: func(_ *twist, x *flow.Execution) { x.NoCache = false }})},
	{name: "workflow beneath a rerun looks into the cache", invariant: []int{67}, tune: wrappingPlan, tx: twisted(twist{workflows: func(_ *twist, x *flow.Execution) {
		if !x.Parent.IsZero() && x.RerunOf.IsZero() {
			x.NoCache = false
		}
	}})},
	{name: "another output is kept", invariant: []int{67, 59}, tune: cachingPlan, tx: twisted(twist{kept: func(_ *twist, _ [][32]byte, all map[[32]byte]store.Kept) {
		for hash, k := range all {
			if k.At.Unix()%3 == 0 {
				k.Output = []byte(`{"v":-1,"run":1}`)
				all[hash] = k
			}
		}
	}})},
}

// cachingPlan is a plan in which most workflows have caches.
func cachingPlan(p *plan) {
	p.Caches, p.Reruns, p.Ops, p.Horizon = true, false, 2*p.Ops, max(p.Horizon, 2*time.Minute)
}
