package worker

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Ended attempts are remembered for a lease, and not for much longer.
func TestRemembered(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	var r remembered
	began := time.Now()
	id := func(n int) flow.AttemptID {
		return flow.AttemptID{Execution: flow.ID{14: byte(n >> 8), 15: byte(n)}, Attempt: 1 + n%3}
	}
	for second := range 200 {
		now := began.Add(time.Duration(second) * time.Second)
		r.add(id(second), now, lease)
		for back := range min(second+1, 31) {
			if !r.has(id(second - back)) {
				t.Fatalf("an attempt is forgotten %d s after its end", back)
			}
		}
		if second > 45 && r.has(id(second-45)) {
			t.Fatal("an attempt is remembered for 45 s")
		}
	}
	if r.has(flow.AttemptID{Execution: id(190).Execution, Attempt: 9}) {
		t.Error("another attempt is taken for one that has ended")
	}
}

// The set finds 1,000 attempts after they were added and none before. Traces with the same lowest bits take neighbouring slots.
func TestTraces(t *testing.T) {
	t.Parallel()
	var r remembered
	attempt := func(n int) flow.AttemptID { return flow.AttemptID{Execution: flow.ID{8: byte(n), 9: byte(n >> 8)}} }
	for n := range 1000 {
		if r.has(attempt(n)) {
			t.Fatalf("attempt %d is found before it was added", n)
		}
		r.add(attempt(n), time.Time{}.Add(time.Hour), time.Hour*24)
		r.add(attempt(n), time.Time{}.Add(time.Hour), time.Hour*24)
	}
	for n := range 1000 {
		if !r.has(attempt(n)) {
			t.Fatalf("attempt %d is not found", n)
		}
	}
	if r.parts[0].n != 1000 {
		t.Errorf("%d traces of 1000 attempts", r.parts[0].n)
	}
}
