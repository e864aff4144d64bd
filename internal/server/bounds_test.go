package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// mostAnswer is the largest size of a list's answer: a page of the store, and what JSON adds.
const mostAnswer = store.PageBytes + store.PageBytes/2

// talkative stores an execution with n events of the largest size, as a worker's handler may write them.
func (h *house) talkative(t *testing.T, n int) flow.ID {
	t.Helper()
	session, now := flow.ID{9}, time.Now().UTC().Truncate(time.Microsecond)
	d := flow.Submit(flow.ID{1, 2, 3}, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "elsewhere", CreatedAt: now})
	err := d.Schedule(1, now)
	if err == nil {
		err = d.Claim(session, "w", now)
	}
	if err != nil {
		t.Fatal(err)
	}
	data := json.RawMessage(`"` + strings.Repeat("<", flow.MostData-2) + `"`)
	r := flow.Report{Execution: d.ID, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: now}}}
	for i := range n {
		r.Events = append(r.Events, flow.Event{Seq: d.NextSeq + 1 + int64(i), Attempt: 1, Type: flow.EvProgress, At: now, Data: data})
	}
	r.Events = append(r.Events, flow.Event{Seq: d.NextSeq + 1 + int64(n), Attempt: 1, Type: flow.EvCompleted, At: now, Outcome: &flow.Outcome{}})
	if rc := d.Report(session, r, nil, nil, now, 0); rc.Verdict != flow.Applied {
		t.Fatalf("report: %+v", rc)
	}
	if err := h.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
	}); err != nil {
		t.Fatal(err)
	}
	return d.ID
}

// Pages of a history with large events are limited in bytes, and a stream has the whole history.
func TestEventsInBytes(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const n = 200 // 12.5 MB
	id := h.talkative(t, n)
	path := "/api/v1/executions/" + id.String() + "/events"
	next, pages := int64(1), 0
	for more, cursor := true, "0"; more; pages++ {
		_, body := h.do(t, "GET", path+"?limit=5000&after="+cursor, "")
		if len(body) > mostAnswer {
			t.Fatalf("an answer of %d bytes", len(body))
		}
		var page api.EventPage
		if err := json.Unmarshal(body, &page); err != nil || len(page.Events) == 0 {
			t.Fatalf("page %d: %d events, %v", pages, len(page.Events), err)
		}
		for _, e := range page.Events {
			if e.Seq != next {
				t.Fatalf("event %d, not %d", e.Seq, next)
			}
			next++
		}
		more, cursor = page.More, page.NextCursor
	}
	if next != n+6 || pages != 4 {
		t.Errorf("%d events in %d pages", next-1, pages)
	}
	lines, _ := h.follow(t, path)
	lines.Buffer(nil, 1<<20)
	if seen, end := ids(t, lines); len(seen) != n+5 || end == "" {
		t.Errorf("a stream of %d events, and the end %q", len(seen), end)
	}
}

// Pages of a list with large executions are limited in bytes; following the cursor finds each execution exactly once.
func TestListInBytes(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	retry := &api.Retry{MaxAttempts: 2}
	for i := range 100 {
		retry.On = append(retry.On, fmt.Sprintf("code-%d-%s", i, strings.Repeat("x", 80)))
	}
	const all = 600 // 6 MB
	// A handler may use any codes; those of a built-in kind are known.
	if _, err := h.client.Define(t.Context(), []byte("kind: action\nname: own\nhandler: own\nqueue: default\n"), "own.yaml"); err != nil {
		t.Fatal(err)
	}
	subs := make([]api.Submission, all)
	for i := range subs {
		subs[i] = api.Submission{Action: "own", Retry: retry, NotBefore: time.Now().Add(time.Hour)}
	}
	if r, err := h.client.SubmitBatch(t.Context(), subs); err != nil || r.Accepted != all {
		t.Fatalf("%+v, %v", r, err)
	}
	seen := map[string]bool{}
	cursor := ""
	for pages := 1; ; pages++ {
		_, body := h.do(t, "GET", "/api/v1/executions?limit=1000&cursor="+cursor, "")
		if len(body) > mostAnswer {
			t.Fatalf("an answer of %d bytes", len(body))
		}
		var page api.ExecutionPage
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		for _, x := range page.Executions {
			if seen[x.ID] {
				t.Fatalf("%s is listed twice", x.ID)
			}
			seen[x.ID] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if len(seen) != all {
		t.Errorf("%d of %d are listed", len(seen), all)
	}
}

// Lists with data of workers come in pages, too.
func TestWorkersInPages(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	rows := 1 // queues: default, and one for each handler that a worker has for its queue
	for i := range 18 {
		s := handoff.Session{Name: fmt.Sprintf("w%d", i), Queues: []string{fmt.Sprintf("q%d", i)}, Slots: 1}
		for n := range 1000 {
			s.Kinds = append(s.Kinds, fmt.Sprintf("kind-%d-%s", n, strings.Repeat("x", 300)))
		}
		rows += len(s.Kinds)
		if _, err := h.engine.Open(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	_, body := h.do(t, "GET", "/api/v1/workers?limit=10000", "")
	var page api.Workers
	if err := json.Unmarshal(body, &page); err != nil || len(body) > mostAnswer || len(page.Workers) == 19 || page.NextCursor == "" {
		t.Errorf("%d workers in %d bytes, %v", len(page.Workers), len(body), err)
	}
	workers, err := h.client.Workers(t.Context())
	names := map[string]bool{}
	for _, w := range workers {
		names[w.Name] = true
	}
	if err != nil || len(workers) != 19 || len(names) != 19 {
		t.Errorf("%d workers with %d names, %v", len(workers), len(names), err)
	}
	type place struct{ queue, handler string }
	got := map[place]bool{}
	for cursor, last := "", ""; ; {
		_, body := h.do(t, "GET", "/api/v1/queues?limit=5000&cursor="+url.QueryEscape(cursor), "")
		var page api.Queues
		if err := json.Unmarshal(body, &page); err != nil || len(body) > mostAnswer || len(page.Queues) > 5000 {
			t.Fatalf("%d queues in %d bytes, %v", len(page.Queues), len(body), err)
		}
		for _, q := range page.Queues {
			if at := (place{q.Queue, q.Handler}); got[at] || q.Queue < last {
				t.Fatalf("%v comes again, or behind %s", at, last)
			} else {
				got[at], last = true, q.Queue
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(got) != rows {
		t.Errorf("%d rows of queues, want %d", len(got), rows)
	}
	if all, err := h.client.Queues(t.Context()); err != nil || len(all) != rows {
		t.Errorf("%d rows of queues, want %d, %v", len(all), rows, err)
	}
}

// Messages about refused items, and the reasons of cancels, are limited in size.
func TestTextsInBytes(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	empty := make([]string, 100)
	subs := make([]api.Submission, 1000)
	for i := range subs {
		subs[i] = api.Submission{Action: "noop", Retry: &api.Retry{On: empty}}
	}
	r, err := h.client.SubmitBatch(t.Context(), subs)
	if err != nil || r.Refused != len(subs) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, e := range r.Results {
		if n := len(e.Problem.Errors); n != batchFaults || !strings.HasPrefix(e.Problem.Detail, "100 faults") {
			t.Fatalf("%d faults are listed: %s", n, e.Problem.Detail)
		}
	}
	id := h.code(t, "hang")
	body := fmt.Sprintf(`{"reason":%q}`, strings.Repeat("x", 5000))
	h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/executions/"+id+"/cancel", body)
	if _, err := h.client.Cancel(t.Context(), id, "enough", 10*time.Second); err != nil && !client.IsFinished(err) {
		t.Error(err)
	}
}

// Every JSON answer ends with a newline.
func TestAnswersEndTheirLine(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, path := range []string{"/api/v1/executions", "/api/v1/queues", "/healthz", "/openapi.json", "/api/v1/nothing", "/api/v1/executions/ex_0"} {
		res, body := h.do(t, "GET", path, "")
		if !strings.HasSuffix(string(body), "}\n") || strings.HasSuffix(string(body), "\n\n") || res.ContentLength != int64(len(body)) {
			t.Errorf("%s: %d bytes of %d, ending with %q", path, len(body), res.ContentLength, body[max(0, len(body)-10):])
		}
	}
}
