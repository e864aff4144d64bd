package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// run submits evaluations with the label run=NAME, in one request, and returns their ids.
func (h *house) run(t testing.TB, name string, sources ...string) []string {
	t.Helper()
	items := make([]api.Evaluation, len(sources))
	for i, source := range sources {
		items[i] = api.Evaluation{Code: api.Code{Language: "python", Source: source}, Labels: map[string]string{"run": name}}
	}
	body, err := json.Marshal(api.EvaluationBatch{Evaluations: items})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i, r := range h.batch(t, string(body)).Results {
		if r.ID == "" {
			t.Fatalf("evaluation %d: %v", i, r.Problem)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// batch posts a batch of evaluations, which must be accepted.
func (h *house) batch(t testing.TB, body string, header ...string) (out api.BatchResult) {
	t.Helper()
	res, answer := h.do(t, "POST", "/api/v1/evaluations:batch", body, header...)
	if err := json.Unmarshal(answer, &out); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s %v\n%.500s", res.Status, err, answer)
	}
	return out
}

func (h *house) get(t testing.TB, path string, out any) {
	t.Helper()
	res, body := h.do(t, "GET", path, "")
	if err := json.Unmarshal(body, out); err != nil || res.StatusCode != 200 {
		t.Fatalf("GET %s: %s %v\n%.500s", path, res.Status, err, body)
	}
}

const ofRun = "label=run%3D"

// Rows of a list have the result of code: the verdict, the error's code, and the resources used.
func TestListsSayHowItEnded(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	h.run(t, "x", "measured", "exit 3", "fail")
	h.run(t, "y", "measured")
	for _, kind := range []string{"executions", "evaluations"} {
		var page api.ExecutionPage
		h.get(t, "/api/v1/"+kind+"?wait=20s&"+ofRun+"x", &page)
		if len(page.Executions) != 3 || page.Unfinished == nil || *page.Unfinished != 0 {
			t.Fatalf("%+v", page)
		}
		bare, bad, good := page.Executions[0], page.Executions[1], page.Executions[2]
		if good.Verdict != "ok" || good.ExitCode == nil || *good.ExitCode != 0 || good.WallMS != 12.5 || good.CPUMS != 3.25 ||
			good.PeakMemoryBytes != 1<<20 || good.Error != nil || good.Output != nil {
			t.Errorf("%s: %+v", kind, good)
		}
		if bad.Verdict != "nonzero_exit" || bad.ExitCode == nil || *bad.ExitCode != 3 || bad.CPUMS != 5 || bad.Error == nil ||
			bad.Error.Code != "nonzero_exit" || len(bad.Error.Message) > 1100 || bad.Output != nil {
			t.Errorf("%s: %+v", kind, bad)
		}
		if bare.Verdict != "nonzero_exit" || bare.ExitCode != nil || bare.Error == nil {
			t.Errorf("%s: %+v", kind, bare)
		}
		h.get(t, "/api/v1/"+kind+"?verdict=ok&"+ofRun+"x", &page)
		if len(page.Executions) != 1 || page.Executions[0].ID != good.ID {
			t.Errorf("%s that are ok: %+v", kind, page)
		}
		h.get(t, "/api/v1/"+kind+"?verdict=nonzero_exit&verdict=timeout&outputs=true", &page)
		if len(page.Executions) != 2 || !strings.Contains(string(page.Executions[1].Output), `"exit_code":3`) || page.Executions[0].Output != nil {
			t.Errorf("%s that are not: %+v", kind, page)
		}
		var counts api.Counts
		h.get(t, "/api/v1/"+kind+":count?"+ofRun+"x", &counts)
		if fmt.Sprint(counts) != "{3 0 false map[completed:1 failed:2] map[nonzero_exit:2 ok:1]}" {
			t.Errorf("%s: %+v", kind, counts)
		}
	}
	one, err := h.client.Wait(t.Context(), h.run(t, "z", "measured")[0])
	if err != nil || one.Verdict != "ok" || one.WallMS != 12.5 {
		t.Errorf("%+v, %v", one, err)
	}
	for _, query := range []string{"verdict=", "verdict=WA", "verdict=Timeout", "verdict=ok&verdict=wrong-answer", "label=run",
		"label=run%3D1&label=run%3D2", "wait=1s", "verdct=ok"} {
		h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/evaluations?"+query, "")
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/evaluations:count", "")
}

// Rows of a list count the cases of code, and list each with its verdict if requested.
func TestListsSayHowCasesEnded(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	h.run(t, "x", "graded", "measured")
	h.get(t, "/api/v1/executions?wait=20s&"+ofRun+"x", &api.ExecutionPage{})
	for kind, list := range map[string]func(context.Context, client.Filter) (*api.ExecutionPage, error){"executions": h.client.List, "evaluations": h.client.ListEvaluations} {
		for _, asked := range []bool{false, true} {
			page, err := list(t.Context(), client.Filter{Labels: map[string]string{"run": "x"}, Cases: asked})
			if err != nil || len(page.Executions) != 2 {
				t.Fatalf("%+v, %v", page, err)
			}
			plain, graded := page.Executions[0], page.Executions[1]
			if plain.Summary != nil || plain.CaseVerdicts != nil {
				t.Errorf("%s without cases: %+v", kind, plain)
			}
			want := "[]"
			if asked {
				want = "[{1 ok} {2 wrong_answer} {3 ok}]"
			}
			if graded.Summary == nil || graded.Summary.Total != 3 || graded.Summary.Passed != 2 || fmt.Sprint(graded.CaseVerdicts) != want || graded.Output != nil {
				t.Errorf("%s: %+v, want the cases %s", kind, graded, want)
			}
		}
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions?cases=some", "")
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions?digest=some", "")
}

// Rows have a letter for each case if requested. The letters are in the history, so that no output is read for them.
func TestListsHaveDigests(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	h.run(t, "x", "graded", "measured")
	h.get(t, "/api/v1/executions?wait=20s&"+ofRun+"x", &api.ExecutionPage{})
	for _, asked := range []bool{false, true} {
		page, err := h.client.List(t.Context(), client.Filter{Labels: map[string]string{"run": "x"}, Digest: asked})
		if err != nil || len(page.Executions) != 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		plain, graded := page.Executions[0], page.Executions[1]
		if plain.Digest != nil || plain.WallMS != 12.5 || graded.Verdict != "wrong_answer" || graded.WallMS != 9 || *graded.Summary != (api.CaseSummary{Total: 3, Passed: 2, Failed: 1}) {
			t.Errorf("%+v and %+v", plain, graded)
		}
		if asked && (graded.Digest == nil || *graded.Digest != api.CaseDigest{Passed: 2, Total: 3, Cells: "PWP", WallMS: 9}) || !asked && graded.Digest != nil {
			t.Errorf("asked for digests: %v, got %+v", asked, graded.Digest)
		}
		var events api.EventPage
		h.get(t, "/api/v1/executions/"+graded.ID+"/events", &events)
		last := events.Events[len(events.Events)-1]
		if want := `{"code":"wrong_answer","message":"2 of 3 cases passed","cases":{"passed":2,"total":3,"cells":"PWP","wall_ms":9,"cpu_ms":0,"peak_memory_bytes":0}}`; string(last.Data) != want {
			t.Errorf("the last event says %s, want %s", last.Data, want)
		}
	}
}

// A request that waits for a label is answered when all executions with it have ended, or with the number of unfinished ones when the wait
// is over.
func TestWaitForALabel(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	ids := h.run(t, "x", "talk", "measured")
	h.run(t, "other", "hang")
	var page api.ExecutionPage
	h.get(t, "/api/v1/evaluations?wait=100ms&status=completed&"+ofRun+"x", &page)
	if page.Unfinished == nil || *page.Unfinished != 1 {
		t.Errorf("after 100 ms: %+v", page)
	}
	h.get(t, "/api/v1/evaluations?"+ofRun+"x", &page)
	if page.Unfinished = nil; len(page.Executions) != 2 {
		t.Errorf("%+v", page)
	}
	begun := time.Now()
	ended := make(chan api.Counts)
	go func() {
		var counts api.Counts
		h.get(t, "/api/v1/evaluations:count?wait=60s&"+ofRun+"x", &counts)
		ended <- counts
	}()
	h.await(t, ids[0], "running", running)
	close(h.voice(ids[0]))
	if counts := <-ended; counts.Total != 2 || counts.Unfinished != 0 || counts.Verdicts["ok"] != 2 || time.Since(begun) > 45*time.Second {
		t.Errorf("%+v after %s", counts, time.Since(begun))
	}
}

// Each item of a batch of evaluations has its own result, and the batch's idempotency key works as for executions.
func TestEvaluationBatch(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const good = `{"language":"python","source":"hello"}`
	body := `{"evaluations":[` + good + `,{"language":"python","source":""},{"language":"cobol","source":"x"},{"language":"python","source":"x","limits":{"wall":-1}},
		{"language":"python","source":"x","wait":"5s"},{"language":"python","source":"x","sauce":1},` + good + `]}`
	r := h.batch(t, body, "Idempotency-Key", "b-1")
	if r.Accepted != 2 || r.Refused != 5 || r.Results[0].ID == "" || r.Results[6].ID == "" {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{1: "evaluations[1].source", 2: "evaluations[2].language", 3: "evaluations[3].limits.wall", 4: "evaluations[4].wait", 5: "evaluations[5].sauce"} {
		if p := r.Results[i].Problem; want != "" && (p == nil || p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Path != want || p.Errors[0].Fix == "") {
			t.Errorf("evaluation %d: %+v, want a fault at %s", i, p, want)
		}
	}
	again := h.batch(t, body, "Idempotency-Key", "b-1")
	if again.Accepted != 2 || !again.Results[0].Existing || again.Results[0].ID != r.Results[0].ID || again.Results[6].ID != r.Results[6].ID {
		t.Errorf("again: %+v", again)
	}
	h.problem(t, 422, api.ProblemIdempotencyMismatch, "POST", "/api/v1/evaluations:batch", strings.Replace(body, "cobol", "cobil", 1), "Idempotency-Key", "b-1")
	h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/evaluations:batch", `{"evaluations":[]}`)
	h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/evaluations:batch", `{}`)
	h.problem(t, 400, api.ProblemInvalid, "POST", "/api/v1/evaluations:batch", `{"evaluations":[{"language":]}`)
	many := make([]string, 1500)
	for i := range many {
		many[i] = "measured"
	}
	if ids := h.run(t, "many", many...); len(ids) != len(many) {
		t.Errorf("%d accepted", len(ids))
	}
	var counts api.Counts
	h.get(t, "/api/v1/evaluations:count?wait=60s&"+ofRun+"many", &counts)
	if counts.Verdicts["ok"] != len(many) || counts.Unfinished != 0 {
		t.Errorf("%+v", counts)
	}
}

// wordy stores n evaluations with the label run=x, each with an output of size bytes.
func (h *house) wordy(t testing.TB, n, size int) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	var drafts []*flow.Draft
	for i := range n {
		d := flow.Submit(flow.ID{0: 1, 14: byte(i >> 8), 15: byte(i)}, flow.Request{Action: "code", Kind: flow.KindCode, Queue: "elsewhere", CreatedAt: now, Labels: map[string]string{"run": "x"}})
		err := d.Schedule(1, now)
		if err == nil {
			err = d.Claim(flow.ID{9}, "w", now)
		}
		if err != nil {
			t.Fatal(err)
		}
		output := json.RawMessage(fmt.Sprintf(`{"stdout":%q,"cpu_ms":%d}`, strings.Repeat("<", size), i+1))
		d.Report(flow.ID{9}, flow.Report{Execution: d.ID, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: now},
			{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: now, Outcome: &flow.Outcome{Output: output}}}}, nil, nil, now, 0)
		drafts = append(drafts, d)
	}
	if err := h.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.Apply(ctx, store.Delta{Drafts: drafts})
	}); err != nil {
		t.Fatal(err)
	}
}

// Pages of a list become shorter, not larger, because of outputs, whether these are shown or only summed up.
func TestListsOfOutputsInBytes(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const all = 45
	h.wordy(t, all, 200_000) // 9 MB
	for _, query := range []string{"", "outputs=true&"} {
		seen, pages, cursor := 0, 0, ""
		for more := true; more; pages++ {
			_, body := h.do(t, "GET", "/api/v1/evaluations?limit=1000&"+query+ofRun+"x&cursor="+cursor, "")
			if len(body) > mostAnswer {
				t.Fatalf("an answer of %d bytes", len(body))
			}
			var page api.ExecutionPage
			if err := json.Unmarshal(body, &page); err != nil || len(page.Executions) == 0 {
				t.Fatalf("%v %.300s", err, body)
			}
			for _, x := range page.Executions {
				if x.CPUMS != float64(all-seen) || (len(x.Output) > 0) != (query != "") {
					t.Fatalf("row %d: %.300v", seen, x)
				}
				seen++
			}
			cursor, more = url.QueryEscape(page.NextCursor), page.NextCursor != ""
		}
		if seen != all || pages != 3 {
			t.Errorf("%d rows in %d pages", seen, pages)
		}
	}
}

// For a label with many executions, the newest ended ones and all unfinished ones are counted.
func TestCountsSayThatThereAreMore(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Reach: 5})
	submit := func(action, input string, n int) {
		t.Helper()
		for range n {
			x, err := h.client.Submit(t.Context(), api.Submission{Action: action, Input: json.RawMessage(input), Labels: map[string]string{"set": "all"}})
			if err == nil && action == "noop" {
				_, err = h.client.Wait(t.Context(), x.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	submit("sleep", `{"for":"1h"}`, 2)
	submit("noop", `{}`, 3)
	counts, err := h.client.Count(t.Context(), client.Filter{Labels: map[string]string{"set": "all"}})
	if err != nil || counts.More || counts.Total != 5 || counts.Unfinished != 2 {
		t.Errorf("%+v %v", counts, err)
	}
	submit("noop", `{}`, 6)
	counts, err = h.client.Count(t.Context(), client.Filter{Labels: map[string]string{"set": "all"}})
	if err != nil || !counts.More || counts.Total != 7 || counts.Unfinished != 2 || counts.Verdicts["ok"] != 5 {
		t.Errorf("of many: %+v %v", counts, err)
	}
}

// A list whose filters match little reports how far it searched, and a client that follows the cursor finds everything once. A lower bound
// on the time ends the search, and bulk requests continue in the same way.
func TestListsSayHowFarTheyLooked(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Reach: 5})
	begun := time.Now()
	submit := func(action, label string) string {
		t.Helper()
		s := api.Submission{Action: action, Labels: map[string]string{"set": label}}
		if action == "sleep" {
			s.Input = json.RawMessage(`{"for":"1h"}`)
		}
		x, err := h.client.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	wanted := submit("sleep", "all")
	for range 12 {
		submit("noop", "all")
	}
	page, err := h.client.List(t.Context(), client.Filter{Action: "sleep"})
	if err != nil || len(page.Executions) > 0 || page.NextCursor == "" || page.SearchedTo == nil || page.SearchedTo.Before(begun.Add(-time.Minute)) {
		t.Fatalf("%+v %v", page, err)
	}
	for say, f := range map[string]client.Filter{
		"by action": {Action: "sleep"}, "by a common label": {Action: "sleep", Labels: map[string]string{"set": "all"}}, "by time": {Action: "sleep", Since: begun.Add(-time.Minute)},
	} {
		var found []string
		for x, err := range h.client.All(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, x.ID)
		}
		if len(found) != 1 || found[0] != wanted {
			t.Errorf("%s: %v", say, found)
		}
	}
	page, err = h.client.List(t.Context(), client.Filter{Action: "sleep", Since: begun.Add(2 * time.Hour)})
	if err != nil || page.NextCursor != "" || page.SearchedTo != nil {
		t.Errorf("all that it looked at is too old: %+v %v", page, err)
	}
	of, done, pages := client.Filter{Action: "sleep"}, 0, 0
	for more := true; more; pages++ {
		r, err := h.client.CancelMany(t.Context(), of, api.BulkRequest{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		done += r.Done
		of.Cursor, more = r.NextCursor, r.NextCursor != ""
	}
	if done != 1 || pages < 3 {
		t.Errorf("%d to cancel, in %d pages", done, pages)
	}
}

// A list can select executions by ids, by the beginning of ids, and by being newer than an id, oldest first.
func TestListsByID(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Reach: 5})
	var all []string // oldest first
	for i := range 12 {
		s := api.Submission{Action: "noop"}
		if i%6 == 2 {
			s = api.Submission{Action: "sleep", Input: json.RawMessage(`{"for":"1h"}`)}
		}
		x, err := h.client.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x.ID)
	}
	slices.Sort(all)
	newest := slices.Clone(all)
	slices.Reverse(newest)
	unknown := flow.ID{1}.String()
	for say, c := range map[string]struct {
		f    client.Filter
		want []string
	}{
		"named":                    {client.Filter{IDs: []string{all[2], all[9], unknown, all[2]}}, []string{all[9], all[2]}},
		"named, of an action":      {client.Filter{IDs: all[:9], Action: "sleep"}, []string{all[8], all[2]}},
		"by a whole id":            {client.Filter{Prefix: all[3]}, all[3:4]},
		"by the beginning of all":  {client.Filter{Prefix: all[0][:6]}, newest},
		"by another beginning":     {client.Filter{Prefix: unknown[:6]}, nil},
		"newer than the first":     {client.Filter{After: all[0]}, all[1:]},
		"newer than the last":      {client.Filter{After: all[11]}, nil},
		"newer, of an action":      {client.Filter{After: all[2], Action: "sleep"}, all[8:9]},
		"newer, by a condition":    {client.Filter{After: all[0], Where: "action = sleep and not label.x exists"}, []string{all[2], all[8]}},
		"newer, by the beginning":  {client.Filter{After: all[4], Prefix: all[0][:6]}, all[5:]},
		"newer, by a whole id":     {client.Filter{After: all[4], Prefix: all[7]}, all[7:8]},
		"newer, but an older one":  {client.Filter{After: all[4], Prefix: all[3]}, nil},
		"newer, created till then": {client.Filter{After: all[9], Until: time.Now().Add(time.Hour)}, all[10:]},
	} {
		for _, c.f.Limit = range []int{1, 5, 100} {
			var found []string
			for x, err := range h.client.All(t.Context(), c.f) {
				if err != nil {
					t.Fatalf("%s: %v", say, err)
				}
				found = append(found, x.ID)
			}
			if !slices.Equal(found, c.want) {
				t.Errorf("%s, %d on a page: %v, want %v of %v", say, c.f.Limit, found, c.want, all)
			}
		}
	}
	page, err := h.client.ListEvaluations(t.Context(), client.Filter{IDs: all})
	if err != nil || len(page.Executions) > 0 {
		t.Errorf("evaluations: %+v, %v", page, err)
	}
	many := strings.Repeat("&id="+all[0], namedMost+1)
	for _, query := range []string{"id=ex_1", "id=", "q=x", "q=ex_l", "after=ex_0", many[1:]} {
		h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions?"+query, "")
	}
}
