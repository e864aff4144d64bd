package definition

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// Cache lets executions of a task end with the stored outcome of an earlier execution that had the same work.
type Cache struct {
	// Key identifies the work, in the scope of the task's expressions. If it is nil, the action and its input identify the work.
	Key *Template
	// TTL is the greatest age of an outcome.
	TTL time.Duration
}

func (b *builder) cache(v *value, t *Task, path string, sc scope) *Cache {
	c := &Cache{}
	if !b.object(v, path, []string{"key", "ttl"}) {
		return c
	}
	if k := v.get("key"); k != nil {
		if k.kind != textValue {
			b.fail(k, problem.Join(path, "key"), `write key: "${{ input.file }}"`, "want text, not %s", k.describe())
		} else {
			c.Key = b.template(k, problem.Join(path, "key"), sc, t.Index)
		}
	}
	if l := v.get("ttl"); l == nil {
		b.fail(v, path, "add ttl: 1h", "ttl is missing: it says how old an outcome may be")
	} else if c.TTL = b.duration(l, problem.Join(path, "ttl"), false); c.TTL > flow.MaxCacheTime {
		b.fail(l, problem.Join(path, "ttl"), "write at most 30d", "outcomes are not kept for %s", problem.Clip(l.text, 40))
	}
	switch {
	case t.Repeat != nil:
		b.fail(v, path, "remove it, or the repeat", "a task with repeat has no cache: each round would end as the first one did")
	case flow.Kind(t.Action).NotCacheable():
		b.fail(v, path, "remove it", "what a task of action %s ends with is not kept: it is about this moment", t.Action)
	}
	return c
}
