package server

import (
	"testing"

	"github.com/pawl-run/pawl/api"
)

// So many histories are replayed at a time as there is memory for, and a replay that has ended makes room.
func TestReplaysAtOnce(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	s, err := c.Submit(ctx, api.Submission{Action: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/executions/" + s.ID + "/replay"
	for range 2 * replaysAtOnce {
		if r, body := h.do(t, "GET", path, ""); r.StatusCode != 200 {
			t.Fatalf("%d %s", r.StatusCode, body)
		}
	}
	for range replaysAtOnce {
		h.replays <- struct{}{}
	}
	h.problem(t, 429, api.ProblemOverloaded, "GET", path, "")
	h.problem(t, 429, api.ProblemOverloaded, "POST", path, `{"document":"name: w\ntasks: {a: {action: noop}}\n"}`)
	<-h.replays
	if r, body := h.do(t, "GET", path, ""); r.StatusCode != 200 {
		t.Errorf("once one has ended: %d %s", r.StatusCode, body)
	}
}
