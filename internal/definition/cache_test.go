package definition

import (
	"strings"
	"testing"
	"time"
)

func TestCacheOfATask(t *testing.T) {
	t.Parallel()
	defs, err := Parse("w.yaml", []byte("name: w\ntasks:\n  a: {foreach: [1], action: noop, cache: {key: \"${{ item }} of ${{ input.x }}\", ttl: 2d}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c := defs[0].Workflow.Tasks[0].Cache; c.TTL != 48*time.Hour || c.Key == nil {
		t.Errorf("the cache is %+v", c)
	}
	for cache, want := range map[string]string{
		"noop, cache: 1h":                                             "tasks.a.cache: want an object",
		"noop, cache: {}":                                             "tasks.a.cache: ttl is missing: it says how old an outcome may be (add ttl: 1h)",
		"noop, cache: {ttl: 31d}":                                     "tasks.a.cache.ttl: outcomes are not kept for 31d (write at most 30d)",
		"noop, cache: {ttl: 0s}":                                      "tasks.a.cache.ttl: 0s is too short",
		"noop, cache: {ttl: 1h, key: 5}":                              "tasks.a.cache.key: want text, not a number",
		"noop, cache: {ttl: 1h, kee: x}":                              `unknown field "kee"`,
		"wait, with: {trigger: t}, cache: {ttl: 1h}":                  "tasks.a.cache: what a task of action wait ends with is not kept",
		"noop, repeat: {until: round == 2, max: 3}, cache: {ttl: 1h}": "tasks.a.cache: a task with repeat has no cache: each round would end as the first one did (remove it, or the repeat)",
		"noop, cache: {ttl: 1h, key: \"${{ item }}\"}":                "item exists in a task with `foreach` only",
	} {
		_, err := Parse("w.yaml", []byte("name: w\ntasks:\n  a: {action: "+cache+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want\n%s", cache, err, want)
		}
	}
}
