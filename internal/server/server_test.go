package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func TestSubmitAndWait(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", Input: json.RawMessage(`{"n": 1}`), Labels: map[string]string{"team": "blue"}})
	if err != nil {
		t.Fatal(err)
	}
	if x, err = h.client.Wait(t.Context(), x.ID); err != nil {
		t.Fatal(err)
	}
	if x.Status != api.Completed || string(x.Output) != `{"n":1}` || x.Labels["team"] != "blue" || x.Kind != "noop" {
		t.Errorf("finished as %+v", x)
	}
	r, err := h.client.Result(t.Context(), x.ID)
	if err != nil || r.Status != api.Completed || string(r.Output) != `{"n":1}` {
		t.Errorf("result %+v, %v", r, err)
	}
	w, err := h.client.Why(t.Context(), x.ID)
	if err != nil || w.Waiting != "nothing" || w.Summary == "" {
		t.Errorf("why %+v, %v", w, err)
	}
	for id, want := range map[string]string{
		"ex_nope":                       `"ex_nope" is not an id: want "ex_" and 26 characters, as in ex_`,
		"ex_" + strings.Repeat("0", 26): `there is no execution "ex_00000000000000000000000000"`,
		"ex_" + strings.Repeat("4", 26): "execution ex_4",
	} {
		if p := h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/executions/"+id+"/why", ""); !strings.Contains(p.Detail, want) || strings.Contains(p.Detail, "begins with") {
			t.Errorf("%q, want %q", p.Detail, want)
		}
	}
	again, err := h.client.Retry(t.Context(), x.ID)
	if err != nil || again.ID == x.ID || again.RetryOf != x.ID {
		t.Fatalf("retry gave %+v, %v", again, err)
	}
	if again, err = h.client.Wait(t.Context(), again.ID); err != nil || string(again.Output) != `{"n":1}` {
		t.Errorf("retried %+v, %v", again, err)
	}
	for of, want := range map[string]int{x.ID: 1, again.ID: 0} {
		if page, err := h.client.List(t.Context(), client.Filter{RetryOf: of}); err != nil || len(page.Executions) != want || want > 0 && page.Executions[0].ID != again.ID {
			t.Errorf("retries of %s: %+v, %v; want %d", of, page, err, want)
		}
	}
}

func TestSubmitWaits(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	res, body := h.do(t, "POST", "/api/v1/executions?wait=20s", `{"action":"noop"}`)
	if res.StatusCode != 200 || !bytes.Contains(body, []byte(`"status":"completed"`)) {
		t.Errorf("%s\n%s", res.Status, body)
	}
	res, body = h.do(t, "POST", "/api/eval", `{"language":"python","source":"hi","wait":"20s"}`)
	if res.StatusCode != 200 || !bytes.Contains(body, []byte(`"verdict":"ok"`)) {
		t.Errorf("%s\n%s", res.Status, body)
	}
	res, body = h.do(t, "POST", "/api/v1/executions", `{"action":"noop"}`)
	var x api.Execution
	if err := json.Unmarshal(body, &x); err != nil || res.StatusCode != 202 || res.Header.Get("Location") != "/api/v1/executions/"+x.ID {
		t.Errorf("%s %v\n%s", res.Status, res.Header, body)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const path = "/api/v1/executions"
	first, one := h.do(t, "POST", path, `{"action":"noop","input":{"a":1}}`, "Idempotency-Key", "k1")
	second, two := h.do(t, "POST", path, `{"action":"noop", "input":{ "a": 1 }}`, "Idempotency-Key", "k1")
	var a, b api.Execution
	if err := errors.Join(json.Unmarshal(one, &a), json.Unmarshal(two, &b)); err != nil {
		t.Fatal(err)
	}
	if first.StatusCode != 202 || second.StatusCode != 200 || a.ID != b.ID || !b.Existing {
		t.Errorf("%s %s then %s %s", first.Status, one, second.Status, two)
	}
	h.problem(t, 422, api.ProblemIdempotencyMismatch, "POST", path, `{"action":"noop","input":{"a":2}}`, "Idempotency-Key", "k1")
	h.problem(t, 400, api.ProblemInvalid, "POST", path, `{"action":"noop","idempotency_key":"k3"}`, "Idempotency-Key", "k2")

	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		wg.Go(func() {
			x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", IdempotencyKey: "race"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = x.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("one key made %s and %s", ids[0], id)
		}
	}
}

// Retention may remove an execution, and its idempotency key with it, after the key was found and before the execution is loaded: then the
// submission makes a new execution, as if it had come a moment later.
func TestIdempotencyBesideRetention(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, c := range []struct{ what, path, body string }{
		{"a submission", "/api/v1/executions", `{"action":"noop"}`},
		{"a submission that waits", "/api/v1/executions?wait=20s", `{"action":"noop"}`},
		{"an evaluation", "/api/v1/evaluations?wait=20s", `{"language":"python","source":"hi"}`},
	} {
		_, second := h.removed(t, c.what, func() (*http.Response, []byte) { return h.do(t, "POST", c.path, c.body, "Idempotency-Key", c.what) })
		if x := h.await(t, second.ID, "ended", func(x *api.Execution) bool { return x.Status.Terminal() }); x.Existing {
			t.Errorf("%s: the new one is taken for an old one", c.what)
		}
	}
	res, body := h.do(t, "POST", "/api/v1/executions?wait=20s", `{"action":"noop"}`)
	var original api.Execution
	if err := json.Unmarshal(body, &original); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s %s", res.Status, body)
	}
	for _, what := range []string{"retry", "rerun"} {
		h.removed(t, what, func() (*http.Response, []byte) {
			return h.do(t, "POST", "/api/v1/executions/"+original.ID+"/"+what, "", "Idempotency-Key", what)
		})
	}
}

// removed submits twice under one key. The first execution is removed before the second submission loads it; the second submission makes
// another one.
func (h *house) removed(t *testing.T, what string, submit func() (*http.Response, []byte)) (first, second api.Execution) {
	t.Helper()
	res, body := submit()
	if err := json.Unmarshal(body, &first); err != nil || res.StatusCode > 202 {
		t.Fatalf("%s: %s %s", what, res.Status, body)
	}
	h.await(t, first.ID, "ended", func(x *api.Execution) bool { return x.Status.Terminal() })
	gone, err := flow.ParseID(flow.ExecutionPrefix, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	remove := func(id flow.ID) {
		if id != gone {
			return
		}
		once.Do(func() {
			err := h.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Remove(ctx, []flow.ID{id})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	h.reads.before.Store(&remove)
	defer h.reads.before.Store(nil)
	res, body = submit()
	if err := json.Unmarshal(body, &second); err != nil || res.StatusCode > 202 || second.ID == first.ID || second.Existing {
		t.Errorf("%s whose twin is removed meanwhile: %s %s", what, res.Status, body)
	}
	return first, second
}

// An execution in a language that no longer exists is still found by its idempotency key.
func TestIdempotencyOfALanguageThatIsGone(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	code, err := json.Marshal(api.Code{Language: "cobol", Source: "x"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.engine.Submit(t.Context(), []engine.Submission{{Action: "code", Input: code, IdempotencyKey: "k1"}})
	if err != nil || out[0].Err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	const path, body = "/api/v1/evaluations", `{"language":"cobol","source":"x"}`
	res, answer := h.do(t, "POST", path, body, "Idempotency-Key", "k1")
	var x api.Execution
	if err := json.Unmarshal(answer, &x); err != nil || res.StatusCode != 200 || x.ID != out[0].Execution.String() || !x.Existing {
		t.Errorf("%s %s", res.Status, answer)
	}
	h.problem(t, 422, api.ProblemIdempotencyMismatch, "POST", path, `{"language":"cobol","source":"y"}`, "Idempotency-Key", "k1")
	h.problem(t, 422, api.ProblemInvalid, "POST", path, body, "Idempotency-Key", "k2")
}

// The header Idempotency-Key makes a batch one request.
func TestBatchIdempotency(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const path = "/api/v1/executions:batch"
	batch := func(items string, key ...string) (r api.BatchResult) {
		t.Helper()
		res, body := h.do(t, "POST", path, `{"executions":[`+items+`]}`, key...)
		if err := json.Unmarshal(body, &r); err != nil || res.StatusCode != 200 {
			t.Fatalf("%s %s %v", res.Status, body, err)
		}
		return r
	}
	const two = `{"action":"noop","input":{"a":1,"b":2}},{"action":"noop"}`
	first := batch(two, "Idempotency-Key", "k1")
	again := batch(`{"input":{"b":2.0,"a":1},"action":"noop"}, {"action":"noop"}`, "Idempotency-Key", "k1")
	if first.Accepted != 2 || again.Accepted != 2 {
		t.Fatalf("%+v %+v", first, again)
	}
	for i := range first.Results {
		if a, b := first.Results[i], again.Results[i]; a.Existing || !b.Existing || a.ID != b.ID {
			t.Errorf("item %d is %+v, and then %+v", i, a, b)
		}
	}
	for name, body := range map[string]string{"changed": `{"action":"noop","input":{"a":1,"b":3}},{"action":"noop"}`, "more": two + `,{"action":"noop"}`, "fewer": `{"action":"noop","input":{"a":1,"b":2}}`} {
		t.Run(name, func(t *testing.T) {
			h.problem(t, 422, api.ProblemIdempotencyMismatch, "POST", path, `{"executions":[`+body+`]}`, "Idempotency-Key", "k1")
		})
	}
	h.problem(t, 422, api.ProblemIdempotencyMismatch, "POST", "/api/v1/executions", `{"action":"noop"}`, "Idempotency-Key", "k1")
	h.problem(t, 400, api.ProblemInvalid, "POST", path, `{"executions":[{"action":"noop","idempotency_key":"k3"}]}`, "Idempotency-Key", "k3")
	h.problem(t, 422, api.ProblemInvalid, "POST", path, `{"executions":[{"action":"noop"}]}`, "Idempotency-Key", strings.Repeat("k", 600))
	if a, b := batch(two), batch(two); a.Results[0].ID == b.Results[0].ID {
		t.Error("without a key a batch was taken for one before")
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	subs := make([]api.Submission, 300)
	for i := range subs {
		subs[i] = api.Submission{Action: "noop", Input: json.RawMessage(fmt.Sprint(i))}
	}
	subs[7].Action = "no-such-thing"
	subs[9].Queue = "nobody serves this"
	r, err := h.client.SubmitBatch(t.Context(), subs)
	if err != nil {
		t.Fatal(err)
	}
	if r.Accepted != 298 || r.Refused != 2 || len(r.Results) != 300 {
		t.Fatalf("accepted %d, refused %d of %d", r.Accepted, r.Refused, len(r.Results))
	}
	p := r.Results[7].Problem
	if p == nil || p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Path != "executions[7].action" || p.Errors[0].Value != "no-such-thing" || p.Errors[0].Fix == "" {
		t.Errorf("problem of item 7: %+v", p)
	}
	if p := r.Results[9].Problem; p == nil || p.Errors[0].Path != "executions[9].queue" {
		t.Errorf("problem of item 9: %+v", p)
	}
	for i, e := range r.Results {
		if i == 7 || i == 9 {
			continue
		}
		x, err := h.client.Wait(t.Context(), e.ID)
		if err != nil || string(x.Output) != fmt.Sprint(i) {
			t.Fatalf("item %d: %+v, %v", i, x, err)
		}
	}
	h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/executions:batch", `{"executions":[]}`)
	h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/executions:batch", `{"executions":[`+strings.Repeat(`{"action":"noop"},`, 10_000)+`{"action":"noop"}]}`)
}

func TestListPagesAndFilters(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	var ids []string
	for i := range 25 {
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", Labels: map[string]string{"n": fmt.Sprint(i % 5), "all": "yes"}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, x.ID)
	}
	for _, id := range ids {
		if _, err := h.client.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	hanging := h.code(t, "hang")
	h.await(t, hanging, "running", running)

	seen := map[string]bool{}
	last := ""
	for x, err := range h.client.All(t.Context(), client.Filter{Action: "noop", Limit: 4}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[x.ID] || (last != "" && x.ID > last) {
			t.Errorf("%s came twice or out of order", x.ID)
		}
		seen[x.ID], last = true, x.ID
		if x.Input != nil || x.Output != nil {
			t.Errorf("a list carries payloads: %+v", x)
		}
	}
	if len(seen) != 25 {
		t.Errorf("walked over %d executions, want 25", len(seen))
	}
	for name, c := range map[string]struct {
		f    client.Filter
		want int
	}{
		"label":  {client.Filter{Labels: map[string]string{"n": "3", "all": "yes"}}, 5},
		"status": {client.Filter{Status: []api.Status{api.Running, api.Requested}}, 1},
		"both":   {client.Filter{Status: []api.Status{api.Running, api.Completed}}, 26},
		"until":  {client.Filter{Until: time.Now().Add(-time.Hour)}, 0},
		"since":  {client.Filter{Since: time.Now().Add(-time.Hour), TopLevel: true}, 26},
	} {
		page, err := h.client.List(t.Context(), c.f)
		if err != nil || len(page.Executions) != c.want {
			t.Errorf("%s: %d executions, want %d (%v)", name, len(page.Executions), c.want, err)
		}
	}
	for _, path := range []string{"/api/evaluations?status=running", "/api/v1/evaluations?status=running"} {
		res, body := h.do(t, "GET", path, "")
		var page api.ExecutionPage
		if err := json.Unmarshal(body, &page); err != nil || res.StatusCode != 200 || len(page.Executions) != 1 || page.Executions[0].ID != hanging {
			t.Errorf("%s: %s %s", path, res.Status, body)
		}
	}
}

func TestEvaluationPaths(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	res, body := h.do(t, "POST", "/api/eval", `{"language":"py","source":"hang"}`)
	var x api.Execution
	if err := json.Unmarshal(body, &x); err != nil || res.StatusCode != 202 {
		t.Fatalf("%s %s", res.Status, body)
	}
	h.await(t, x.ID, "running", running)
	if _, body := h.do(t, "GET", "/api/eval/"+x.ID+"/running", ""); !strings.Contains(string(body), `"running":true`) {
		t.Errorf("running: %s", body)
	}
	begun := time.Now()
	res, body = h.do(t, "POST", "/api/eval/"+x.ID+"/kill?wait=20s", "")
	if err := json.Unmarshal(body, &x); err != nil || res.StatusCode != 200 || x.Status != api.Cancelled {
		t.Errorf("kill: %s %s", res.Status, body)
	}
	t.Logf("killed in %s", time.Since(begun))
	if _, body := h.do(t, "GET", "/api/eval/"+x.ID+"/running", ""); !strings.Contains(string(body), `"running":false`) {
		t.Errorf("running: %s", body)
	}
	if res, _ := h.do(t, "GET", "/api/eval/"+x.ID+"/logs", ""); res.StatusCode != 200 {
		t.Errorf("logs: %s", res.Status)
	}
	if res, _ := h.do(t, "GET", "/api/eval/"+x.ID, ""); res.StatusCode != 200 {
		t.Errorf("get: %s", res.Status)
	}
	res, body = h.do(t, "POST", "/api/v1/executions/"+x.ID+"/cancel", `{"reason":"again"}`)
	if err := json.Unmarshal(body, &x); err != nil || res.StatusCode != 200 || x.Status != api.Cancelled {
		t.Errorf("cancelled again: %s %s", res.Status, body)
	}

	noop, err := h.client.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/eval/"+noop.ID, "")
	if _, err := h.client.Wait(t.Context(), noop.ID); err != nil {
		t.Fatal(err)
	}
	h.problem(t, 409, api.ProblemFinished, "POST", "/api/v1/executions/"+noop.ID+"/cancel", "")
}

func TestResultOfWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "hang")
	h.problem(t, 409, api.ProblemNotFinished, "GET", "/api/v1/executions/"+id+"/result", "")
	h.await(t, id, "running", running)
	p := h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/executions/"+id+"/retry", "")
	if len(p.Errors) == 0 || p.Errors[0].Fix == "" {
		t.Errorf("retry of a running execution: %+v", p)
	}
	if _, err := h.client.Kill(t.Context(), id, "enough", 20*time.Second); err != nil {
		t.Fatal(err)
	}
	x, err := h.client.Get(t.Context(), id)
	if err != nil || x.Status != api.Cancelled || x.Error == nil || string(x.Output) != `{"verdict":"killed"}` {
		t.Errorf("killed: %+v, %v", x, err)
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "hang")
	h.await(t, id, "running", running)
	path := "/api/v1/executions/" + id
	res, _ := h.do(t, "GET", path, "")
	tag := res.Header.Get("ETag")
	if res, body := h.do(t, "GET", path, "", "If-None-Match", `"x", W/`+tag); res.StatusCode != 304 || len(body) != 0 {
		t.Errorf("unchanged: %s, %d bytes", res.Status, len(body))
	}
	if _, err := h.client.Kill(t.Context(), id, "", 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if res, _ := h.do(t, "GET", path, "", "If-None-Match", tag); res.StatusCode != 200 || res.Header.Get("ETag") == tag {
		t.Errorf("changed: %s, ETag %s before and %s now", res.Status, tag, res.Header.Get("ETag"))
	}
}

func TestRequestIDAndTrace(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	res, body := h.do(t, "POST", "/api/v1/executions?wait=5s", `{"action":"noop"}`, "X-Request-ID", "mine-1", "traceparent", trace)
	if res.Header.Get("X-Request-Id") != "mine-1" || !strings.Contains(string(body), trace) {
		t.Errorf("request id %q\n%s", res.Header.Get("X-Request-Id"), body)
	}
	if res, _ := h.do(t, "GET", "/healthz", "", "X-Request-ID", "with space"); strings.Contains(res.Header.Get("X-Request-Id"), " ") {
		t.Errorf("a bad request id was passed on: %q", res.Header.Get("X-Request-Id"))
	}
}
