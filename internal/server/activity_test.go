package server

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

func readings(submitted, completed, failed int64) *engine.Stats {
	return &engine.Stats{Submitted: submitted, Claimed: completed + failed, Ended: map[flow.Stage]int64{flow.Completed: completed, flow.Failed: failed}}
}

// Each minute has the work done in it; the last minute is still running, and one day is kept.
func TestActivity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[engine.Stats]
		var a activity
		done := func(submitted, completed, failed int64) { now.Store(readings(submitted, completed, failed)) }
		done(0, 0, 0)
		a.start(t.Context(), func() engine.Stats { return *now.Load() })
		done(5, 3, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		done(6, 4, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		done(9, 4, 2)
		all := a.steps(time.Now(), *now.Load(), time.Minute, 4)
		want := []api.ActivityStep{{}, {Submitted: 5, Claimed: 4, Completed: 3, Failed: 1}, {Submitted: 1, Claimed: 1, Completed: 1}, {Submitted: 3, Claimed: 1, Failed: 1}}
		for i, w := range want {
			w.At = time.Now().Truncate(time.Minute).Add(time.Duration(i-3) * time.Minute).UTC()
			if all[i] != w {
				t.Errorf("step %d is %+v, want %+v", i, all[i], w)
			}
		}
		if all = a.steps(time.Now(), *now.Load(), time.Hour, 2); all[0].Submitted+all[1].Submitted != 9 {
			t.Errorf("by the hour: %+v", all)
		}
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		if n := len(a.minutes); n != activityKept {
			t.Errorf("%d minutes are remembered", n)
		}
	})
}

func TestActivityRoute(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop"})
	if err == nil {
		_, err = h.client.Wait(t.Context(), x.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.client.Activity(t.Context(), 5*time.Minute, 3)
	if err != nil || len(a.Steps) != 3 || time.Duration(a.Step) != 5*time.Minute {
		t.Fatalf("%+v %v", a, err)
	}
	var sum api.ActivityStep
	for i := range a.Steps {
		sum.Add(&a.Steps[i])
	}
	if sum.Submitted != 1 || sum.Completed != 1 {
		t.Errorf("%+v", sum)
	}
	for _, query := range []string{"step=30s", "step=90s", "step=25h", "step=x", "limit=0", "limit=1441"} {
		if p := h.problem(t, http.StatusBadRequest, api.ProblemInvalid, "GET", "/api/v1/activity?"+query, ""); len(p.Errors) != 1 || p.Errors[0].Fix == "" {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// The latest result of a verification is answered without another verification.
func TestLastVerification(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	h.problem(t, http.StatusNotFound, api.ProblemNotFound, "GET", "/api/v1/verify?last=true", "")
	found, err := h.client.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last, err := h.client.LastVerification(t.Context())
	if err != nil || !last.At.Equal(found.At) || last.At.IsZero() {
		a, _ := json.Marshal(last)
		t.Errorf("%s %v", a, err)
	}
}
