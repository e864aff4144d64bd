package server

import (
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// A list names the open question of a workflow and of the execution that asks, and so does the execution alone, whose ETag changes with it:
// a workflow has no event when its task asks or is answered while another task runs.
func TestAskingInLists(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte("name: release\ntasks:\n  approve: {action: ask, with: {title: Ship it?}}\n  rest: {action: sleep, with: {for: 1h}}\n"), ""); err != nil {
		t.Fatal(err)
	}
	w, err := h.client.Submit(t.Context(), api.Submission{Action: "release"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/executions/" + w.ID
	var asked api.Execution
	h.await(t, w.ID, "a question", func(x *api.Execution) bool { asked = *x; return x.Inquiry != "" })
	res, _ := h.do(t, "GET", path, "")
	tag := res.Header.Get("ETag")
	if got := h.questions(t); got["release"] != asked.Inquiry || got["ask"] != asked.Inquiry || got["sleep"] != "" {
		t.Errorf("the list names %v, want %s for the workflow and its task", got, asked.Inquiry)
	}
	if _, err := h.client.Answer(t.Context(), asked.Inquiry, api.Reply{By: "ada", Answer: []byte(`true`)}); err != nil {
		t.Fatal(err)
	}
	if res, _ := h.do(t, "GET", path, "", "If-None-Match", tag); res.StatusCode != 200 {
		t.Errorf("an answer left the ETag as it was: %s", res.Status)
	}
	if got := h.questions(t); got["release"] != "" || got["ask"] != "" {
		t.Errorf("once answered the list names %v", got)
	}
}

// Every workflow above a sub-workflow names its question, and no other workflow does.
func TestAskingOfSubWorkflows(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte("name: inner\ntasks:\n  approve: {action: ask, with: {title: Ship it?}}\n---\nname: quiet\ntasks:\n  rest: {action: sleep, with: {for: 1h}}\n"+
		"---\nname: middle\ntasks:\n  in: {action: inner}\n  beside: {action: quiet}\n---\nname: outer\ntasks:\n  mid: {action: middle}\n"), ""); err != nil {
		t.Fatal(err)
	}
	w, err := h.client.Submit(t.Context(), api.Submission{Action: "outer"})
	if err != nil {
		t.Fatal(err)
	}
	var asked api.Execution
	h.await(t, w.ID, "a question", func(x *api.Execution) bool { asked = *x; return x.Inquiry != "" })
	got := h.questions(t)
	for action, want := range map[string]string{"outer": asked.Inquiry, "middle": asked.Inquiry, "inner": asked.Inquiry, "ask": asked.Inquiry, "quiet": "", "sleep": ""} {
		if got[action] != want {
			t.Errorf("the list names %q for %s, want %q", got[action], action, want)
		}
	}
	if _, err := h.client.Answer(t.Context(), asked.Inquiry, api.Reply{By: "ada", Answer: []byte(`true`)}); err != nil {
		t.Fatal(err)
	}
	if got := h.questions(t); got["outer"]+got["middle"]+got["inner"] != "" {
		t.Errorf("once answered the list names %v", got)
	}
}

// questions returns the questions that a list of all executions names, by action.
func (h *house) questions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for x, err := range h.client.All(t.Context(), client.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[x.Action] = x.Inquiry
	}
	return found
}
