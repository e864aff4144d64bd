package server

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// A condition narrows a list like its other filters; a client that follows the cursor finds everything once.
func TestListsByCondition(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Reach: 8})
	submit := func(team string) string {
		t.Helper()
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "sleep", Input: json.RawMessage(`{"for":"1h"}`), Labels: map[string]string{"team": team}})
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	wanted := []string{submit("docs"), submit("docs")}
	for range 11 {
		submit("web")
	}
	wanted = append(wanted, submit("docs"))
	const where = "label.team != web and kind = sleep"
	page, err := h.client.List(t.Context(), client.Filter{Where: where})
	if err != nil || len(page.Executions) != 1 || page.NextCursor == "" || page.SearchedTo == nil {
		t.Fatalf("%+v %v", page, err)
	}
	for _, f := range []client.Filter{{Where: where}, {Where: where, Limit: 1}, {Where: "label.team = docs"}, {Where: "label.team in (docs, x)", TopLevel: true, Action: "sleep"}} {
		var ids []string
		for x, err := range h.client.All(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append([]string{x.ID}, ids...)
		}
		if strings.Join(ids, " ") != strings.Join(wanted, " ") {
			t.Errorf("%+v: %v, want %v", f, ids, wanted)
		}
	}
	cancelled := 0
	for f, more := (client.Filter{Where: where}), true; more; more = f.Cursor != "" {
		r, err := h.client.CancelMany(t.Context(), f, api.BulkRequest{})
		if err != nil {
			t.Fatal(err)
		}
		cancelled += r.Done
		f.Cursor = r.NextCursor
	}
	if cancelled != 3 {
		t.Errorf("%d cancelled, want 3", cancelled)
	}
	if n := len(slices.Collect(func(yield func(string) bool) {
		for x, err := range h.client.All(t.Context(), client.Filter{Where: "status = cancelled and label.team = docs"}) {
			if err != nil || !yield(x.ID) {
				t.Error(err)
				return
			}
		}
	})); n != 3 {
		t.Errorf("%d are cancelled, want 3", n)
	}
	if evaluations, err := h.client.ListEvaluations(t.Context(), client.Filter{Where: "action = sleep"}); err != nil || len(evaluations.Executions) != 0 {
		t.Errorf("%+v %v", evaluations, err)
	}
}

func TestConditionsAreChecked(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for where, want := range map[string]api.FieldError{
		"status = faild":                 {Path: "?where", Value: "faild", Line: 1, Column: 10, Message: `there is no status "faild"`, Fix: `did you mean "failed"?`},
		"label.team = docs &&\nx":        {Path: "?where", Value: "&&", Line: 1, Column: 19, Message: `"&&" does not join conditions`, Fix: "write and"},
		"input.a = 1":                    {Path: "?where", Value: "input.a", Line: 1, Column: 1, Message: "no definition declares input.a searchable", Fix: "add searchable: [input.a] to the definition, and apply it"},
		"not " + strings.Repeat("(", 60): {Path: "?where", Value: "(", Line: 1, Column: 54, Message: "more than 50 parentheses and nots are within one another", Fix: "write it flatter"},
	} {
		for _, path := range []string{"/api/v1/executions?", "/api/v1/evaluations?"} {
			p := h.problem(t, 400, api.ProblemInvalid, "GET", path+url.Values{"where": {where}}.Encode(), "")
			if len(p.Errors) != 1 || p.Errors[0] != want {
				t.Errorf("%s: %+v, want %+v", where, p.Errors, want)
			}
		}
		h.problem(t, 400, api.ProblemInvalid, "POST", "/api/v1/executions:cancel?"+url.Values{"where": {where}}.Encode(), "")
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions?label=a%3Db&wait=1s&where=status%3Drunning", "")
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions:count?label=a%3Db&where=status%3Drunning", "")
}
