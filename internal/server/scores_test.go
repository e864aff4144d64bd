package server

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// Each group has its own accuracy and pass@k. A broken sandbox counts in no figure about programs. For a retried evaluation only the retry
// counts, once it has ended.
func TestScores(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	ids := map[string]string{}
	for i, e := range []struct{ model, task, source string }{
		{"a", "t1", "measured"}, {"a", "t1", "fail"}, {"a", "t2", "measured"}, {"a", "t2", "measured"},
		{"b", "t1", "graded"}, {"b", "t1", "hang"}, {"b", "t2", "measured"},
		{"", "", "measured"},
	} {
		labels := map[string]string{"run": "17"}
		if e.model != "" {
			labels["model"], labels["task"] = e.model, e.task
		}
		x, err := h.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "python", Source: e.source}, Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		ids[fmt.Sprint(i)] = x.ID
		if e.source != "hang" {
			h.await(t, x.ID, "ended", terminal)
		}
	}
	query := client.ScoreQuery{Name: "run", Value: "17", By: []string{"model"}, K: []int{1, 2}}
	scores, err := h.client.Scores(t.Context(), query)
	if err != nil || !scores.Open {
		t.Errorf("while one runs: %+v, %v", scores, err)
	}
	if _, err := h.client.Cancel(t.Context(), ids["5"], "", 0); err != nil {
		t.Fatal(err)
	}
	h.await(t, ids["5"], "cancelled", terminal)
	again, err := h.client.Retry(t.Context(), ids["5"])
	if err != nil {
		t.Fatal(err)
	}
	if scores, err = h.client.Scores(t.Context(), query); err != nil || !scores.Open || len(scores.Groups) != 3 || scores.Groups[2].Unjudged != 0 {
		t.Errorf("while a retry runs: %+v, %v", scores, err)
	}
	if _, err := h.client.Cancel(t.Context(), again.ID, "", 0); err != nil {
		t.Fatal(err)
	}
	h.await(t, again.ID, "cancelled", terminal)
	again, err = h.client.Retry(t.Context(), ids["1"])
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, again.ID, "ended", terminal)
	if scores, err = h.client.Scores(t.Context(), query); err != nil || scores.Open || len(scores.Groups) != 3 {
		t.Fatalf("%+v, %v", scores, err)
	}
	for i, want := range []api.Score{
		{Labels: map[string]string{}, Judged: 1, Passed: 1, Accuracy: 1, Untasked: 1},
		{Labels: map[string]string{"model": "a"}, Judged: 4, Passed: 3, Accuracy: 0.75, Tasks: 2, PassAt: []api.PassAt{{K: 1, Value: 0.75}, {K: 2, Value: 1}}},
		{Labels: map[string]string{"model": "b"}, Judged: 2, Passed: 1, Accuracy: 0.5, Unjudged: 1, Tasks: 2, PassAt: []api.PassAt{{K: 1, Value: 0.5}}},
	} {
		got := scores.Groups[i]
		if got.Labels["model"] != want.Labels["model"] || got.Judged != want.Judged || got.Passed != want.Passed || got.Unjudged != want.Unjudged || got.Tasks != want.Tasks ||
			got.Untasked != want.Untasked || got.Accuracy != want.Accuracy || len(got.PassAt) != len(want.PassAt) {
			t.Errorf("got %+v\nwant %+v", got, want)
			continue
		}
		for j, p := range want.PassAt {
			if got.PassAt[j].K != p.K || math.Abs(got.PassAt[j].Value-p.Value) > 1e-12 {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		}
	}
	if v := scores.Groups[2].Verdicts; v["wrong_answer"] != 1 || v["cancelled"] != 1 || v["ok"] != 1 {
		t.Errorf("verdicts %v", v)
	}
	// By two labels, and by none; with another label for the tasks.
	if scores, err = h.client.Scores(t.Context(), client.ScoreQuery{Name: "run", Value: "17", By: []string{"model", "task"}}); err != nil || len(scores.Groups) != 5 {
		t.Errorf("by two: %+v, %v", scores, err)
	}
	if scores, err = h.client.Scores(t.Context(), client.ScoreQuery{Name: "run", Value: "17", Task: "model"}); err != nil || len(scores.Groups) != 1 || scores.Groups[0].Tasks != 2 || scores.Groups[0].Judged != 7 {
		t.Errorf("by none: %+v, %v", scores, err)
	}
	if scores, err = h.client.Scores(t.Context(), client.ScoreQuery{Name: "run", Value: "18"}); err != nil || len(scores.Groups) != 0 || scores.Open {
		t.Errorf("of nothing: %+v, %v", scores, err)
	}
}

func TestScoresRefuse(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for query, place := range map[string]string{
		"label=run=1" + strings.Repeat("&k=1", api.ScoresPassAt+1): "k",
		"by=model": "label", "label=run": "label", "label=run=1&k=0": "k", "label=run=1&k=1,2": "k", "label=run=1&by=a&by=b&by=c&by=d&by=e": "by", "label=run=1&group=model": "group",
	} {
		if p := h.problem(t, http.StatusBadRequest, api.ProblemInvalid, "GET", "/api/v1/evaluations:scores?"+query, ""); len(p.Errors) != 1 || p.Errors[0].Path != "?"+place {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// The number of groups in an answer is limited.
func TestScoresOfTooManyGroups(t *testing.T) {
	t.Parallel()
	var all []graded
	for i := range api.ScoresGroups {
		all = append(all, graded{"ok", map[string]string{"n": fmt.Sprint(i)}})
	}
	if groups, ok := grouped(all, []string{"n"}, "task"); !ok || len(groups) != api.ScoresGroups {
		t.Errorf("%d groups, %t", len(groups), ok)
	}
	if _, ok := grouped(append(all, graded{"ok", nil}), []string{"n"}, "task"); ok {
		t.Error("one group more is taken")
	}
}
