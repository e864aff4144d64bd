package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
)

// submitBatch submits items to /FIELD:batch, each under an idempotency key. If the server could not say what became of an item (its Problem
// has the status 503), the item is submitted again under the same key, as a single submission is. If the first one was accepted after all,
// the answer names its execution.
func submitBatch[T any](ctx context.Context, c *Client, field string, all []T, key func(*T) *string) (*api.BatchResult, error) {
	items := slices.Clone(all)
	left := make([]int, len(items)) // indexes of the items to submit
	repeatable := true
	base := c.key("")
	for i := range items {
		k := key(&items[i])
		if *k == "" && c.keys {
			*k = base + "." + strconv.Itoa(i)
		}
		repeatable = repeatable && *k != ""
		left[i] = i
	}
	out := &api.BatchResult{Results: make([]api.BatchEntry, len(items))}
	begun := time.Now()
	for attempt := 1; ; attempt++ {
		some := make([]T, len(left))
		for k, i := range left {
			some[k] = items[i]
		}
		var r api.BatchResult
		err := c.call(ctx, request{method: http.MethodPost, path: "/" + field + ":batch", body: map[string][]T{field: some}, repeatable: repeatable}, &r)
		switch {
		case err != nil && attempt == 1:
			return nil, err
		case err != nil:
			return out, nil // with the results of earlier tries: the caller can submit items with the status 503 again
		case len(r.Results) != len(left):
			return nil, fmt.Errorf("the server answered %d verdicts for %d %s", len(r.Results), len(left), field)
		}
		out.Accepted += r.Accepted
		var again []int
		for k, i := range left {
			out.Results[i] = r.Results[k]
			p := r.Results[k].Problem
			if p == nil {
				continue
			}
			place(p, fmt.Sprintf("%s[%d]", field, k), fmt.Sprintf("%s[%d]", field, i))
			if p.Status == http.StatusServiceUnavailable && *key(&items[i]) != "" {
				again = append(again, i)
			}
		}
		out.Refused = len(items) - out.Accepted
		next := pauseAfter(attempt, 0)
		if len(again) == 0 || time.Since(begun)+next > c.patience || pause(ctx, next) != nil {
			return out, nil
		}
		left = again
	}
}

// place rewrites the paths in a problem about a part of the batch as paths in the whole batch.
func place(p *api.Problem, sent, whole string) {
	if sent == whole {
		return
	}
	p.Instance = whole
	for i := range p.Errors {
		if rest, ok := strings.CutPrefix(p.Errors[i].Path, sent); ok {
			p.Errors[i].Path = whole + rest
		}
	}
}
