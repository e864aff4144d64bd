package server

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// The facts in the sentences of an answer are also in its fields: the page and other programs do not parse sentences.
func TestWhySaysItInFields(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	key := &api.Concurrency{Key: "deploy", Limit: 1}
	submit := func(in api.Submission) string {
		x, err := h.client.Submit(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	holder := submit(api.Submission{Action: "sleep", Input: []byte(`{"for": "1h"}`), Concurrency: key})
	waiting := submit(api.Submission{Action: "noop", Concurrency: key, QueueTimeout: api.Duration(time.Hour), TotalTimeout: api.Duration(2 * time.Hour)})
	running := h.code(t, "hang")
	h.await(t, running, "running", func(x *api.Execution) bool { return x.Status == api.Running })
	needy := submit(api.Submission{Action: "noop", WorkerLabels: map[string]string{"gpu": "a100"}})
	all, err := h.client.WhyMany(t.Context(), []string{waiting, running, needy, "ex_nope"})
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	page, err := h.client.List(t.Context(), client.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, x := range page.Executions {
		if rows[x.ID] = x.Waiting; x.Seq < 1 {
			t.Errorf("%s has no number of its latest event: %+v", x.ID, x)
		}
	}
	if want := map[string]string{holder: "sleep", waiting: "key", running: "worker", needy: "queue"}; !maps.Equal(rows, want) {
		t.Errorf("rows wait for %v, want %v", rows, want)
	}
	w := all[0].Why
	if w.ID != waiting || w.Action != "noop" || w.Waiting != "key" || w.PlaceOf != "key" || w.Position != 1 || w.KeyLimit != 1 || !slices.Equal(w.Holders, []string{holder}) || w.SelfHeld {
		t.Errorf("%+v", w)
	}
	if len(w.Deadlines) != 2 || w.Deadlines[0].Of != "queue_timeout" || w.Deadlines[1].Of != "total_timeout" || w.Deadlines[1].At.Sub(w.Deadlines[0].At).Round(time.Minute) != time.Hour {
		t.Errorf("deadlines %+v", w.Deadlines)
	}
	if w = all[1].Why; w.ID != running || w.Waiting != "worker" || w.Worker == "" || time.Until(w.LeaseUntil) <= 0 {
		t.Errorf("%+v", w)
	}
	if w = all[2].Why; w.Workers != 0 || len(w.Lacking) == 0 || !slices.Equal(w.Lacking[0].Lacks, []string{"label gpu=a100"}) || w.PlaceOf != "queue" {
		t.Errorf("%+v", w)
	}
	if p := all[3].Problem; p == nil || p.Status != 404 || !strings.Contains(p.Detail, "ex_nope") {
		t.Errorf("%+v", p)
	}
	h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/executions:why", `{"ids": []}`)
}

// A submission is checked as when it is submitted, but nothing is stored.
func TestCheckSubmission(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte("name: greet\nkind: action\naction: noop\ninput: {type: object, required: [who], properties: {who: {type: string}, n: {type: integer}}}\n"), ""); err != nil {
		t.Fatal(err)
	}
	v, err := h.client.CheckSubmission(t.Context(), api.Submission{Action: "greet", Input: []byte(`{"who": "ann"}`)})
	if err != nil || !v.Valid || v.Action != "greet" || v.Version != 1 || v.Kind != "noop" || v.Queue != "default" || len(v.Problems) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err = h.client.CheckSubmission(t.Context(), api.Submission{Action: "greet", Input: []byte(`{"n": "many"}`)}); err != nil || v.Valid || len(v.Problems) != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err = h.client.CheckSubmission(t.Context(), api.Submission{Action: "gret"}); err != nil || v.Valid || len(v.Problems) != 1 || !strings.Contains(v.Problems[0].Fix, "greet") {
		t.Errorf("%+v, %v", v, err)
	}
	for path, body := range map[string]string{"limits.wall": `{"language":"bash","source":"x","limits":{"wall":"soon"}}`, "collect[0]": `{"language":"bash","source":"x","collect":["../x"]}`, "lables": `{"language":"bash","source":"x","lables":{}}`} {
		var v api.SubmissionCheck
		if res, answer := h.do(t, "POST", "/api/v1/evaluations:validate", body); res.StatusCode != 200 || json.Unmarshal(answer, &v) != nil || v.Valid || len(v.Problems) != 1 || v.Problems[0].Path != path {
			t.Errorf("%s: %s %s", path, res.Status, answer)
		}
	}
	if v, err = h.client.CheckEvaluation(t.Context(), api.Evaluation{Code: api.Code{Language: "pyhton", Source: "1"}}); err != nil || v.Valid || v.Problems[0].Path != "language" {
		t.Errorf("%+v, %v", v, err)
	}
	if all, err := h.client.List(t.Context(), client.Filter{}); err != nil || len(all.Executions) > 0 {
		t.Errorf("a check has left %+v, %v", all, err)
	}
}
