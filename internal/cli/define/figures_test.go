package define

import (
	"strings"
	"testing"
	"time"

	"math"

	"github.com/pawl-run/pawl/api"
)

// Versions are distinguished, ends are counted, and a difference is reported only if the intervals do not overlap.
func TestFiguresOfVersions(t *testing.T) {
	began := time.Now()
	of := func(version int, status api.Status, took time.Duration) *api.Execution {
		return &api.Execution{Version: version, Status: status, StartedAt: began, FinishedAt: began.Add(took)}
	}
	a, b := &versionFigures{Name: "w", Version: 1}, &versionFigures{Name: "w", Version: 2}
	both := func(x *api.Execution) { a.add(x); b.add(x) }
	for i := range 100 {
		both(of(1, api.Completed, time.Duration(i+1)*time.Second))
		both(of(2, api.Completed, time.Second))
		both(of(3, api.Failed, time.Second))
	}
	both(of(1, api.TimedOut, 0))
	both(of(1, api.Cancelled, 0))
	both(of(1, api.Running, 0))
	for range 20 {
		both(of(2, api.Failed, 0))
	}
	a.sum()
	b.sum()
	if a.Executions != 103 || a.Completed != 100 || a.Failed != 1 || a.Cancelled != 1 || a.Open != 1 || a.P50 != 50 || a.P99 != 99 {
		t.Errorf("%+v", a)
	}
	if says := verdictOf(a, b); says != "w@2 fails more often than w@1" {
		t.Error(says)
	}
	if says := verdictOf(b, a); says != "w@2 fails more often than w@1" {
		t.Error(says)
	}
	if says := verdictOf(a, a); !strings.Contains(says, "no difference") {
		t.Error(says)
	}
	if says := verdictOf(a, &versionFigures{Name: "w", Version: 4}); !strings.Contains(says, "no execution of w@4") {
		t.Error(says)
	}
}

// Wilson's interval, also for none, all and few: its width is never 0.
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		hits, n   int
		low, high float64
	}{
		{0, 10, 0, 0.27753}, {5, 10, 0.23659, 0.76341}, {10, 10, 0.72247, 1}, {1, 1000, 0.00018, 0.00564},
	} {
		low, high := wilson(tt.hits, tt.n)
		if math.Abs(low-tt.low) > 1e-5 || math.Abs(high-tt.high) > 1e-5 {
			t.Errorf("%d of %d: %.5f to %.5f, want %.5f to %.5f", tt.hits, tt.n, low, high, tt.low, tt.high)
		}
	}
}
