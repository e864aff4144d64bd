package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// A list as a stream has its current items, oldest first, then new and changed ones.
func TestWatchedLists(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c := h.client
	if _, err := c.Define(t.Context(), []byte("kind: rule\nname: r\non: t\nbatch: {key: k, size: 3, wait: 1h}\nrun: {action: noop}\n"), "r.yaml"); err != nil {
		t.Fatal(err)
	}
	emit := func(trigger string) string {
		s, err := c.Emit(t.Context(), api.Emission{Trigger: trigger})
		if err != nil {
			t.Fatal(err)
		}
		return s.Signal
	}
	want := []string{emit("t"), emit("u")}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	var got []string
	for s, err := range c.FollowSignals(ctx, client.SignalFilter{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, s.ID); len(got) == 2 {
			for range 7 { // more than a page
				want = append(want, emit("t"))
			}
		}
		if len(got) == len(want) {
			break
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}

	states := map[string]string{}
	for e, err := range c.FollowEnforcements(ctx, client.EnforcementFilter{Rule: "r"}) {
		if err != nil {
			t.Fatal(err)
		}
		if states[e.Signal] = e.State; len(states) == 8 && fmt.Sprint(counts(states)) == "map[folded:4 held:2 ran:2]" {
			emit("t")
		}
		if fmt.Sprint(counts(states)) == "map[folded:6 ran:3]" {
			break
		}
	}

	asked := h.asked(t, `{"title":"first?"}`)
	for i, err := range c.FollowInquiries(ctx, client.InquiryFilter{State: "all"}) {
		if err != nil {
			t.Fatal(err)
		}
		if i.ID != asked.ID {
			t.Errorf("%+v", i)
		}
		if i.State == api.InquiryAnswered {
			break
		}
		if _, err := c.Answer(ctx, i.ID, api.Reply{By: "ada", Answer: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
	}
	if res, body := h.do(t, "GET", "/api/v1/signals?limit=0", "", "Accept", mediaEvents); res.StatusCode != 400 {
		t.Errorf("%s %s", res.Status, body)
	}
}

func counts(states map[string]string) map[string]int {
	n := map[string]int{}
	for _, s := range states {
		n[s]++
	}
	return n
}

// A stream of the list has a message at its start, one after a change, and one that says that nothing has changed. The time is that of a
// synctest bubble, in which each message comes exactly when it is due.
func TestListTellsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Options{})
		c := client.NewInProcess(h.Handler())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var at []time.Time
		var idle []bool
		for change, err := range c.FollowChanges(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if at = append(at, change.At); len(at) == 1 {
				if _, err := c.Submit(ctx, api.Submission{Action: "noop"}); err != nil {
					t.Fatal(err)
				}
			}
			if idle = append(idle, change.Idle); len(at) == 4 {
				break
			}
		}
		for i, d := range []struct{ least, most time.Duration }{{changedEvery, changedAnyway}, {changedEvery, 2 * changedAnyway}, {changedEvery, 2 * changedAnyway}} {
			if got := at[i+1].Sub(at[i]); got < d.least || got >= d.most {
				t.Errorf("message %d came %s after the one before, want %s to %s", i+2, got, d.least, d.most)
			}
		}
		if idle[0] || idle[1] || !idle[3] { // the execution may end before or after the second message
			t.Errorf("idle: %v; want only messages without a change to say so", idle)
		}
	})
}

// Errors in a request for a stream of the list are answered before it begins, and the stream ends with the server.
func TestListOfChangesEnds(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, query := range []string{"wait=1s&label=a=b", "status=ended", "limit=0"} {
		h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions?"+query, "", "Accept", mediaEvents)
	}
	lines, res := h.follow(t, "/api/v1/evaluations?label=a=b")
	if res.Header.Get("Content-Type") != mediaEvents || !lines.Scan() {
		t.Fatalf("headers %v", res.Header)
	}
	waitFor(t, "the stream", func() bool { return openStreams(t, h) == 1 })
	h.Drain()
	if _, end := ids(t, lines); end != "" || lines.Err() != nil {
		t.Errorf("a stream that the server broke off ended with %q, %v", end, lines.Err())
	}
}
