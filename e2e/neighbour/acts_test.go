package neighbour

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
)

// The workflows of the hostile client. poison makes a concurrency key with a NUL byte in an expression, after a timer and after a report;
// bomb starts two of itself again and again, 16,000 in all when it is 13 levels deep; wide gives a large output to each of many children;
// failing does the same with children that fail, and is retried; heavy evaluates for as long as an expression may.
const definitions = `
name: poison
tasks:
  zero: {action: noop, with: {text: '"a\u0000b"'}}
  nap: {needs: [zero], action: sleep, with: {for: 200ms}}
  two: {needs: [zero, nap], action: noop, concurrency: {key: "${{ parse_json(tasks.zero.output.text) }}"}}
---
name: poison-now
tasks:
  zero: {action: noop, with: {text: '"a\u0000b"'}}
  two: {needs: [zero], foreach: "${{ [1, 2, 3] }}", action: noop, concurrency: {key: "${{ parse_json(tasks.zero.output.text) }}"}}
  three: {needs: [zero], action: workflow, with: {name: "${{ parse_json(tasks.zero.output.text) }}", input: {}}}
---
name: bomb
input: {type: object}
tasks:
  one: {if: "${{ input.n > 0 }}", action: bomb, with: {n: "${{ input.n - 1 }}"}}
  two: {if: "${{ input.n > 0 }}", action: bomb, with: {n: "${{ input.n - 1 }}"}}
---
name: wide
input: {type: object}
tasks:
  load: {action: noop, with: {data: "${{ input.data }}"}}
  nap: {needs: [load], action: sleep, with: {for: 10ms}}
  each: {needs: [load, nap], foreach: "${{ lists.range(input.n) }}", action: noop, with: {data: "${{ tasks.load.output.data }}", i: "${{ item }}"}}
  all: {needs: [each], action: noop, with: {all: "${{ tasks.each.output }}"}}
---
name: failing
retry: {max_attempts: 100, backoff: constant, delay: 1ms}
input: {type: object}
tasks:
  bad: {action: http, with: {url: "http://127.0.0.1:1/"}, retry: {max_attempts: 3, backoff: constant, delay: 1ms}}
  each: {foreach: "${{ lists.range(input.n) }}", action: http, with: {url: "http://127.0.0.1:1/"}}
---
name: heavy
input: {type: object}
tasks:
  one: {action: noop, with: {n: "${{ lists.range(3000).map(a, lists.range(3000).filter(b, a * b % 7 == 0).size()) }}"}}
  two: {action: noop, with: {s: "${{ lists.range(100000).map(a, string(a) + input.text).join(',') }}"}}
outputs: {all: "${{ lists.range(20000).map(a, lists.range(200)) }}"}
`

// results are programs whose output is not valid JSON, or is larger than allowed.
var results = []string{
	`printf '"\xff\xfe"' > $PAWL_OUTPUT`,
	`printf '"a\\u0000b"' > $PAWL_OUTPUT`,
	`printf '"\\ud800"' > $PAWL_OUTPUT`,
	`printf '1e999999' > $PAWL_OUTPUT`,
	`printf '{"a":1,"a":2}' > $PAWL_OUTPUT`,
	`printf '[%.0s' {1..5000} > $PAWL_OUTPUT`,
	`head -c 17000000 /dev/zero | tr '\0' 1 > $PAWL_OUTPUT`,
	`head -c 3000000 /dev/urandom`,
	`head -c 3000000 /dev/urandom >&2; exit 7`,
	`for i in {1..20000}; do echo $i; done`,
	`kill -9 $$`,
}

// sizes are sizes of inputs, at the limits of pieces, blobs, pages and requests.
var sizes = []int{0, 1 << 10, 64<<10 - 1, 100_000, 100_001, 256 << 10, 1 << 20, 4 << 20, 16<<20 - 1000, 16<<20 + 1}

var acts = []act{
	{"documents that compute", compute},
	{"large inputs", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		input := map[string]any{"text": strings.Repeat("x", sizes[r.IntN(len(sizes))])}
		ids := h.batch(ctx, []map[string]any{{"action": "noop", "input": input}, {"action": "noop", "input": input}})
		id := h.submit(ctx, map[string]any{"action": "noop", "input": input})
		h.send(ctx, http.MethodGet, "/executions/"+id, "", nil, nil)
		return append(ids, id)
	}},
	{"nested inputs", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		n := []int{190, 199, 200, 201, 1_000_000}[r.IntN(5)]
		return []string{h.submitRaw(ctx, []byte(`{"action":"noop","input":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`))}
	}},
	{"nonsense", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		bad := []string{"", "null", "[]", "{\"action\":\"noop\",\"input\":\"\xff\xfe\"}", `{"action":"noop","input":"a\u0000b"}`, `{"action":"no\u0000op"}`,
			`{"action":"noop","labels":{"\ud800":"x"}}`, `{"action":"noop","priority":1e99}`, `{"action":"noop","not_before":"9999-12-31T23:59:59Z"}`,
			`{"action":"noop","timeout":"-1s"}`, `{"action":"noop","not_before":"0001-01-01T00:00:00Z"}`, `{"action":"sleep","input":{"for":1e300}}`}
		for range 10 {
			if id := h.submitRaw(ctx, []byte(bad[r.IntN(len(bad))])); id != "" {
				h.cancel(ctx, id)
			}
		}
		h.send(ctx, http.MethodPost, "/executions", "application/json", &broken{1 << 20}, nil)
		h.send(ctx, http.MethodPost, "/definitions", "application/yaml", strings.NewReader("a: &a [x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n"), nil)
		return nil
	}},
	{"labels and keys at their limits", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		labels := map[string]string{}
		for i := range 64 {
			labels[fmt.Sprintf("%0256d", i)] = strings.Repeat("v", 256)
		}
		var all []map[string]any
		for range 200 {
			all = append(all, map[string]any{"action": "noop", "labels": labels, "queue_timeout": "1s", "priority": 1000,
				"concurrency": map[string]any{"key": fmt.Sprintf("%0512d", r.IntN(100)), "limit": 1 + r.IntN(100_000)}})
		}
		all[0]["worker_labels"] = map[string]string{"no": "worker"}
		return h.batch(ctx, all)
	}},
	{"a line of a key", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		var all []map[string]any
		for i := range 1000 {
			full := []string{"queue", "queue", "cancel_new", "cancel_oldest"}[r.IntN(4)]
			all = append(all, map[string]any{"action": "noop", "input": i, "concurrency": map[string]any{"key": "line", "limit": 1 + r.IntN(3), "when_full": full}})
		}
		return h.batch(ctx, all)
	}},
	{"batches submitted again", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		var all []map[string]any
		for i := range 500 {
			all = append(all, map[string]any{"action": "sleep", "input": map[string]any{"for": "1ms"}, "idempotency_key": fmt.Sprintf("item-%d-%d", r.IntN(20), i)})
		}
		key := fmt.Sprint("batch-", r.IntN(5))
		ids := h.batch(ctx, all, "Idempotency-Key", key)
		h.batch(ctx, all, "Idempotency-Key", key)
		h.batch(ctx, all[1:], "Idempotency-Key", key)
		return ids[:min(len(ids), 3)]
	}},
	{"timers of one instant", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		at := time.Now().Add(500 * time.Millisecond).UTC()
		var all []map[string]any
		for i := range 2000 {
			s := map[string]any{"action": "sleep", "input": map[string]any{"for": "300ms"}}
			if i%2 == 0 {
				s = map[string]any{"action": "sleep", "input": map[string]any{"for": "1ms"}, "not_before": at}
			}
			all = append(all, s)
		}
		ids := h.batch(ctx, all)
		return ids[:min(len(ids), 20)]
	}},
	{"retries", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		var all []map[string]any
		for range 20 {
			all = append(all, map[string]any{"action": "http", "input": map[string]any{"url": "http://127.0.0.1:1/"},
				"retry": map[string]any{"max_attempts": 100, "backoff": "constant", "delay": "1ms"}})
		}
		return append(h.batch(ctx, all), h.submit(ctx, map[string]any{"action": "failing", "input": map[string]any{"n": 1 + r.IntN(300)}}))
	}},
	{"large outputs to many children", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		text := strings.Repeat("x", []int{10, 10_000, 200_000, 1_000_000}[r.IntN(4)])
		s := map[string]any{"action": "wide", "input": map[string]any{"n": 1 + r.IntN(2000), "data": text}, "idempotency_key": fmt.Sprint("wide-", r.IntN(1000))}
		id := h.submit(ctx, s)
		h.cancel(ctx, id)
		h.submit(ctx, s)
		delete(s, "idempotency_key")
		return []string{h.submit(ctx, s)}
	}},
	{"very wide", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		return []string{h.submit(ctx, map[string]any{"action": "wide", "input": map[string]any{"n": 100_000 + r.IntN(2), "data": "x"}})}
	}},
	{"workflows in workflows", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		return []string{h.submit(ctx, map[string]any{"action": "bomb", "input": map[string]any{"n": 6 + r.IntN(8)}})}
	}},
	{"graphs", func(h *hostile, ctx context.Context, _ *rand.Rand) []string {
		h.send(ctx, http.MethodPost, "/definitions", "application/yaml", strings.NewReader(string(h.graph)), nil)
		return []string{h.submit(ctx, map[string]any{"action": "graph"})}
	}},
	{"expressions", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		return []string{h.submit(ctx, map[string]any{"action": "heavy", "input": map[string]any{"text": strings.Repeat("x", r.IntN(200))}})}
	}},
	{"keys with NUL bytes", func(h *hostile, ctx context.Context, _ *rand.Rand) []string {
		return h.batch(ctx, []map[string]any{{"action": "poison"}, {"action": "poison-now"}, {"action": "poison"}})
	}},
	{"stdin", (*hostile).stdin},
	{"results", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		return []string{h.submit(ctx, map[string]any{"action": "code", "input": map[string]any{"language": "bash", "source": results[r.IntN(len(results))]},
			"retry": map[string]any{"max_attempts": 5, "delay": "1ms"}})}
	}},
	{"readers", func(h *hostile, ctx context.Context, r *rand.Rand) []string {
		for _, path := range []string{"/executions?limit=1000", "/executions?limit=1000&top_level=true&status=running", "/keys", "/queues", "/stats",
			"/executions?label=a%00=b", "/executions?cursor=%ff%fe", "/executions/" + strings.Repeat("x", 5000)} {
			h.send(ctx, http.MethodGet, path, "", nil, nil)
		}
		left, leave := context.WithTimeout(ctx, time.Duration(r.IntN(50))*time.Millisecond) // the client leaves in the middle
		defer leave()
		h.send(left, http.MethodGet, "/executions?limit=1000", "", nil, nil)
		return nil
	}},
}

// stdin writes to an interactive program at odd offsets: pieces of any size, some sent again from their middle, some over existing bytes,
// some with other bytes, and all of it from the start.
func (h *hostile) stdin(ctx context.Context, r *rand.Rand) []string {
	id := h.submit(ctx, map[string]any{"action": "code", "input": map[string]any{"language": "bash", "source": "cat > /dev/null", "interactive": true,
		"limits": map[string]any{"wall": "5s"}}})
	if id == "" {
		return nil
	}
	all := make([]byte, 20_000)
	for i := range all {
		all[i] = byte('a' + i%26)
	}
	write := func(from, to int, body io.Reader) {
		if body == nil {
			body = strings.NewReader(string(all[from:to]))
		}
		status := h.send(ctx, http.MethodPost, fmt.Sprintf("/executions/%s/stdin?offset=%d", id, from), "application/octet-stream", body, nil)
		if ctx.Err() == nil && status == http.StatusConflict && !h.ended(ctx, id) {
			h.t.Errorf("bytes %d to %d of a stdin, as they were given before, are refused", from, to)
		}
	}
	at := 0
	for range 30 {
		to := min(len(all), at+1+r.IntN(1500))
		write(at, to, nil)
		from := r.IntN(to)
		write(from, from+1+r.IntN(to-from), nil)
		at = to
	}
	for i := range 20 {
		write(i, i+1, nil)
	}
	write(0, at, nil)
	write(r.IntN(at), at, strings.NewReader("")) // nothing at all
	h.send(ctx, http.MethodPost, fmt.Sprintf("/executions/%s/stdin?offset=%d", id, at+100), "application/octet-stream", strings.NewReader("beyond"), nil)
	h.send(ctx, http.MethodPost, "/executions/"+id+"/stdin?offset=0", "application/octet-stream", strings.NewReader("other bytes"), nil)
	h.send(ctx, http.MethodPost, fmt.Sprintf("/executions/%s/stdin?eof=true&offset=%d", id, at), "application/octet-stream", strings.NewReader(""), nil)
	return []string{id}
}

// ended reports whether an execution has ended, or is gone.
func (h *hostile) ended(ctx context.Context, id string) bool {
	var x struct {
		Status api.Status `json:"status"`
	}
	return h.send(ctx, http.MethodGet, "/executions/"+id, "", nil, &x) != http.StatusOK || x.Status.Terminal()
}
