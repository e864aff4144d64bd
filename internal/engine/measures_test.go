package engine

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// The age of the commits is that of the oldest running one, even if a younger one has ended.
func TestAgeOfCommits(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	want := func(what string, least, most time.Duration) {
		t.Helper()
		if age := g.e.Stats().CommitAge; age < least || age > most {
			t.Errorf("%s: the oldest commit is %s old, not %s to %s", what, age, least, most)
		}
	}
	want("at the start", 0, 0)
	g.request(1)
	slow := g.some(1)
	slow.age(2 * time.Hour)
	g.request(1)
	quick := g.some(1)
	quick.age(time.Hour)
	want("with two under way", 2*time.Hour, 3*time.Hour)
	g.e.endBatch(slow)
	want("with the younger one left", time.Hour, 2*time.Hour)
	g.request(besideFrom)
	third := g.some(besideFrom)
	g.e.endBatch(quick)
	want("with a third one begun meanwhile", 0, time.Hour)
	g.e.endBatch(third)
	want("at the end", 0, 0)
}

// The age of the requests is that of the oldest one in no transaction: a transaction without room for all leaves the younger ones.
func TestAgeOfPendingRequests(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	want := func(what string, least, most time.Duration) {
		t.Helper()
		if age := g.e.Stats().PendingAge; age < least || age > most {
			t.Errorf("%s: the oldest request has waited for %s, not %s to %s", what, age, least, most)
		}
	}
	handedIn := func(n int, ago time.Duration) {
		g.Helper()
		g.request(n)
		last := &g.e.batcher.plain.calls[len(g.e.batcher.plain.calls)-1]
		last.at = last.at.Add(-ago)
	}
	want("at the start", 0, 0)
	handedIn(batchLimit-1, 3*time.Hour)
	handedIn(2*batchLimit/smallPart, 2*time.Hour)
	handedIn(2*batchLimit/smallPart, time.Hour)
	want("with all pending", 3*time.Hour, 4*time.Hour)
	if b := g.some(batchLimit); b.callers != 1 {
		t.Errorf("%d callers have all of their requests in the transaction, not 1", b.callers)
	}
	want("with most of the second caller's left", 2*time.Hour, 3*time.Hour)
	if b := g.some(4*batchLimit/smallPart - 1); b.callers != 2 {
		t.Errorf("%d callers have the last of their requests in the transaction, not 2", b.callers)
	}
	want("with all taken", 0, 0)
	g.request(1)
	want("with a new one", 0, time.Hour)
}

// Ends are counted by status.
func TestEndsByStatus(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	for range 3 {
		r.submit(Submission{Action: "noop"})
		h.complete(h.take(1)[0], "1")
	}
	r.submit(Submission{Action: "noop"})
	h.fail(h.take(1)[0], "broken")
	for range 2 {
		id := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":"1h"}`)})
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			t.Fatal(err)
		}
		r.ended(id)
	}
	late := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":"1h"}`), Settings: flow.Settings{Timeout: time.Minute}})
	r.pass(2 * time.Minute)
	r.ended(late)
	s := r.e.Stats()
	if want := map[flow.Stage]int64{flow.Completed: 3, flow.Failed: 1, flow.Cancelled: 2, flow.TimedOut: 1}; s.Finished != 7 || !maps.Equal(s.Ended, want) {
		t.Errorf("%d ended: %v, not %v", s.Finished, s.Ended, want)
	}
}

// The engine reports when retention last finished a pass, and nothing while it is off.
func TestRetentionsLastPass(t *testing.T) {
	t.Parallel()
	began := time.Now().Truncate(time.Microsecond)
	on := newRig(t, func(o *Options) { o.Retention = time.Hour })
	on.within(patience, "retention has not been through", func() bool { return !on.e.Stats().Retained.IsZero() })
	if s := on.e.Stats(); s.Retention != time.Hour || s.Retained.Before(began) || s.Retained.After(time.Now()) {
		t.Errorf("a retention of %s was through at %s, after a start at %s", s.Retention, s.Retained, began)
	}
	off := newRig(t)
	off.submit(Submission{Action: "noop"})
	if s := off.e.Stats(); s.Retention != 0 || !s.Retained.IsZero() {
		t.Errorf("without retention: %s, through at %s", s.Retention, s.Retained)
	}
}
