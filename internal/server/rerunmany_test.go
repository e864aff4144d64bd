package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// The client's loop reruns the executions that a list selects, in pages and beyond the reach of a search. A plan changes nothing, and a
// refusal does not affect the others. A resumed loop makes no rerun twice, and selects nothing newer than at its start.
func TestRerunMany(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Reach: 4})
	submit := func(action, input, team string) string {
		t.Helper()
		x, err := h.client.Submit(t.Context(), api.Submission{Action: action, Input: json.RawMessage(input), Labels: map[string]string{"team": team}})
		if err == nil && action != "sleep" {
			x, err = h.client.Wait(t.Context(), x.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	done := []string{submit("noop", `{"n":1}`, "docs"), submit("noop", `{"n":2}`, "docs")}
	open := submit("sleep", `{"for":"1h"}`, "docs")
	for range 6 {
		submit("noop", "{}", "web")
	}
	f := client.Filter{Where: "label.team = docs and status in (completed, running) and kind in (noop, sleep)", Limit: 1}
	many, err := h.client.RerunMany(t.Context(), f, "")
	if err != nil || !slices.Equal(many.Executions, []string{open, done[1], done[0]}) || !strings.HasPrefix(many.ID, open+".") {
		t.Fatalf("%+v %v", many, err)
	}
	planned := map[string]client.BulkRerun{}
	for r, err := range many.Plan(t.Context(), api.RerunRequest{}, 2) {
		if err != nil {
			t.Fatal(err)
		}
		planned[r.Of] = r
	}
	if p := planned[open].Refused; len(planned) != 3 || p == nil || !strings.Contains(p.Detail, "still") || planned[done[0]].Plan.Action != "noop" {
		t.Errorf("%+v", planned)
	}
	if page, err := h.client.List(t.Context(), client.Filter{RerunOf: done[0]}); err != nil || len(page.Executions) != 0 {
		t.Errorf("the plan has made %+v, %v", page, err)
	}
	for r, err := range many.Run(t.Context(), api.RerunRequest{}, 1) { // interrupted after the first rerun that is not refused
		if err != nil {
			t.Fatal(err)
		}
		if r.Refused == nil {
			break
		}
	}
	again, err := h.client.RerunMany(t.Context(), f, many.ID)
	if err != nil || !slices.Equal(again.Executions, many.Executions) {
		t.Fatalf("%+v %v, and at first %+v", again, err, many)
	}
	refused := 0
	for r, err := range again.Run(t.Context(), api.RerunRequest{}, 2) {
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Refused != nil:
			refused++
		case r.New.RerunOf != r.Of || r.New.Status != api.Completed:
			t.Errorf("%+v", r)
		}
	}
	for _, id := range done {
		if page, err := h.client.List(t.Context(), client.Filter{RerunOf: id}); err != nil || len(page.Executions) != 1 || refused != 1 {
			t.Errorf("%s has reruns %+v, %v; %d were refused", id, page, err, refused)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, err := range many.Run(stopped, api.RerunRequest{}, 2) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after its context has ended: %v", err)
		}
	}
	for _, err := range many.Run(t.Context(), api.RerunRequest{Definition: "a b"}, 2) { // the same key for a different rerun, which is refused
		if err != nil {
			t.Errorf("%v", err)
		}
	}
	for _, c := range []struct {
		f      client.Filter
		resume string
		say    string
	}{{f, "7", "not the ID of reruns"}, {client.Filter{}, "", "no execution that it is meant"}} {
		if _, err := h.client.RerunMany(t.Context(), c.f, c.resume); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v, want %q", err, c.say)
		}
	}
	if _, err := h.client.Cancel(t.Context(), open, "", 0); err != nil {
		t.Error(err)
	}
}
