package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// A schedule pauses itself when as many of its executions as its document says have failed in a row. A success, and a resume, restart the
// count; cancelled and running executions are not counted.
func TestPauseAfter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define("kind: schedule\nname: s\nevery: 1h\noverlap: allow\npause_after: 2\nrun: {action: noop}\n")
	h := r.worker()
	hour := func(end func(handoff.Assignment)) {
		t.Helper()
		r.tick(time.Hour)
		work := h.take(1)
		if len(work) != 1 {
			t.Fatalf("%d executions were started", len(work))
		}
		end(work[0])
	}
	fail := func(a handoff.Assignment) { h.fail(a, "boom") }
	complete := func(a handoff.Assignment) { h.complete(a, "1") }
	cancel := func(a handoff.Assignment) {
		if _, err := r.e.Cancel(r.ctx, a.Execution, "enough"); err != nil {
			t.Fatal(err)
		}
		h.report(a, ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvCancelled, &flow.Outcome{Error: &flow.Error{Code: flow.CodeCancelled, Message: "enough"}}))
	}
	hour(fail)
	hour(complete)
	hour(fail)
	hour(cancel)
	hour(func(handoff.Assignment) {}) // it goes on
	if k := r.schedule("s"); !k.PausedAt.IsZero() {
		t.Fatalf("paused after one failure: %+v", k)
	}
	hour(fail)
	before := r.schedule("s")
	r.tick(time.Hour)
	k := r.schedule("s")
	if k.PausedAt.IsZero() || !strings.Contains(k.Reason, "2 executions in a row failed") || !k.Next.Equal(before.Next) || k.Execution != before.Execution || !k.Due.IsZero() {
		t.Fatalf("after two failures: %+v", k)
	}
	r.tick(3 * time.Hour)
	if _, err := r.e.ResumeSchedule(r.ctx, "s", false); err != nil {
		t.Fatal(err)
	}
	hour(fail)
	hour(func(handoff.Assignment) {})
	if k := r.schedule("s"); !k.PausedAt.IsZero() {
		t.Errorf("paused for failures from before it was resumed: %+v", k)
	}
	all := r.ticks("s")
	if got := strings.Join(all[len(all)-3:], ", "); !strings.HasPrefix(got, "missed paused") || !strings.HasSuffix(got, "catch_up, catch_up") {
		t.Errorf("ticks %q", all)
	}
}
