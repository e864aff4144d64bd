package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Only a limited number of histories is replayed at a time, because of their memory; a replay that has ended makes room.
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
		h.replays.free <- struct{}{}
	}
	h.problem(t, 429, api.ProblemOverloaded, "GET", path, "")
	h.problem(t, 429, api.ProblemOverloaded, "POST", path, `{"document":"name: w\ntasks: {a: {action: noop}}\n"}`)
	<-h.replays.free
	if r, body := h.do(t, "GET", path, ""); r.StatusCode != 200 {
		t.Errorf("once one has ended: %d %s", r.StatusCode, body)
	}
}

// For a past event the API says what the execution waited for at that time, and what it cannot know.
func TestReplayWhy(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	s, err := c.Submit(ctx, api.Submission{Action: "noop", NotBefore: time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Replay(ctx, s.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	why := r.State.Why
	if why.Waiting != "time" || !strings.Contains(why.Summary, "it was to start at 2099-01-02 03:04:05Z") || why.Until.Year() != 2099 || !slices.Equal(why.Facts, []string{"no event has followed yet"}) || why.NotKnown == nil {
		t.Errorf("%+v", why)
	}
	if _, err = c.Cancel(ctx, s.ID, "", 0); err != nil {
		t.Fatal(err)
	}
	if r, err = c.Replay(ctx, s.ID, 1); err != nil || r.State.Why.Waiting != "time" || !strings.HasPrefix(r.State.Why.Facts[0], "event 2, cancelled, came ") {
		t.Errorf("once it is cancelled: %+v %v", r, err)
	}
	if r, err = c.Replay(ctx, s.ID, 2); err != nil || r.State.Why.Waiting != "nothing" || !strings.HasPrefix(r.State.Why.Summary, "nothing: it had ended as cancelled") {
		t.Errorf("at its end: %+v %v", r, err)
	}
}
