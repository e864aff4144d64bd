package definition

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// maxRate is the largest number of executions that may begin in the span of a rate.
const maxRate = 100_000

func (b *builder) rate(v *value, path string, sc scope, task int) *Rate {
	if v == nil {
		return nil
	}
	at := func(field string) string { return problem.Join(path, field) }
	if !b.object(v, path, []string{"key", "limit", "per", "burst", "over"}) {
		return nil
	}
	r := &Rate{Bound: flow.Rate{Burst: 1, Over: flow.OverDelay}}
	r.Key = b.sharedKey(v, path, "mails", sc, task)
	for _, field := range []string{"limit", "per"} {
		if v.get(field) == nil {
			b.fail(v, path, "write rate: {key: mails, limit: 6, per: 1m}", "%s is missing", field)
		}
	}
	r.Bound.Limit, _ = b.whole(v.get("limit"), at("limit"), 1, maxRate)
	r.Bound.Per = b.duration(v.get("per"), at("per"), false)
	if n := r.Bound.Limit; n > 0 && r.Bound.Per > 0 && r.Bound.Per/time.Duration(n) < time.Microsecond {
		b.fail(v.get("per"), at("per"), "leave the rate out: that often nothing begins", "%d in %s is more often than once a microsecond", n, r.Bound.Per)
	}
	if n, ok := b.whole(v.get("burst"), at("burst"), 1, maxRate); ok {
		r.Bound.Burst = n
	}
	if over := b.oneOf(v.get("over"), at("over"), string(flow.OverDelay), string(flow.OverDrop)); over != "" {
		r.Bound.Over = flow.Over(over)
	}
	return r
}

// sharedKey reads the key of a concurrency limit or a rate.
func (b *builder) sharedKey(v *value, path, example string, sc scope, task int) *Template {
	key := v.get("key")
	switch {
	case key == nil:
		b.fail(v, path, "add key: "+example, "key is missing")
	case key.kind == textValue && key.text == "":
		b.fail(key, problem.Join(path, "key"), "name what is limited", "the key is empty")
	case key.kind == listValue || key.kind == objectValue || key.kind == nullValue:
		b.fail(key, problem.Join(path, "key"), "write a string", "want a string, not %s", key.kind)
	default:
		return b.template(key, problem.Join(path, "key"), sc, task)
	}
	return nil
}

func (b *builder) concurrency(v *value, path string, sc scope, task int) *Concurrency {
	if !b.object(v, path, []string{"key", "limit", "when_full", "fair_by", "weight"}) {
		return nil
	}
	c := &Concurrency{Limit: 1, WhenFull: flow.WhenFullQueue}
	c.Key = b.sharedKey(v, path, `"${{ input.customer }}"`, sc, task)
	if limit := v.get("limit"); limit != nil {
		c.Limit, _ = b.whole(limit, problem.Join(path, "limit"), 1, 100_000)
	}
	if w := b.oneOf(v.get("when_full"), problem.Join(path, "when_full"), string(flow.WhenFullQueue), string(flow.WhenFullCancelNew), string(flow.WhenFullCancelOldest)); w != "" {
		c.WhenFull = flow.WhenFull(w)
	}
	if by := v.get("fair_by"); by != nil {
		at := problem.Join(path, "fair_by")
		if k := by.kind; k == listValue || k == objectValue || k == nullValue {
			b.fail(by, at, `write fair_by: "${{ input.customer }}"`, "want a string, not %s", k)
		} else {
			c.FairBy, c.Weight = b.template(by, at, sc, task), 1
		}
		if c.WhenFull == flow.WhenFullCancelNew {
			b.idle(by, at, "remove it, or write when_full: queue",
				"fair_by has no effect: with when_full: cancel_new no execution waits for its turn")
		}
	}
	if n, ok := b.whole(v.get("weight"), problem.Join(path, "weight"), 1, flow.MostWeight); ok {
		if c.Weight = n; c.FairBy == nil {
			b.fail(v.get("weight"), problem.Join(path, "weight"), "add fair_by, or remove it", "it says how many turns one has for another's one, and there is no fair_by")
		}
	}
	return c
}
