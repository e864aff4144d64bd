package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestReserve(t *testing.T) {
	t0 := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	var tat time.Time
	var got []time.Duration
	for _, after := range []time.Duration{0, 0, 0, 0, 0, 2 * time.Minute, 2 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		var begin time.Time
		begin, tat = Reserve(tat, t0.Add(after), 6, time.Minute, 3)
		got = append(got, begin.Sub(t0))
	}
	const s = time.Second
	for i, want := range []time.Duration{0, 0, 0, 10 * s, 20 * s, 120 * s, 120 * s, 600 * s, 600 * s} {
		if got[i] != want {
			t.Errorf("the %dth begins after %s, want %s", i, got[i], want)
		}
	}
}

// However they come, no more than limit + burst begin in any span, none begins before it comes, and they begin in the order in which they
// come; what comes slower than the rate is not delayed.
func TestReserveKeepsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, burst := rapid.IntRange(1, 50).Draw(t, "limit"), rapid.IntRange(1, 10).Draw(t, "burst")
		per := time.Duration(rapid.IntRange(1, 3600).Draw(t, "seconds")) * time.Second
		interval := per / time.Duration(limit)
		now := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
		var tat, last time.Time
		var begins []time.Time
		slow := true
		for i := range rapid.IntRange(1, 200).Draw(t, "n") {
			gap := time.Duration(rapid.Int64Range(0, int64(2*interval)).Draw(t, "gap"))
			slow = slow && (i == 0 || gap >= interval)
			now = now.Add(gap)
			var begin time.Time
			begin, tat = Reserve(tat, now, limit, per, burst)
			if begin.Before(now) || begin.Before(last) || slow && !begin.Equal(now) {
				t.Fatalf("came at %s, begins at %s after %s", now, begin, last)
			}
			begins, last = append(begins, begin), begin
			first := len(begins) - 1
			for first > 0 && begin.Sub(begins[first-1]) < per {
				first--
			}
			if n := len(begins) - first; n > limit+burst {
				t.Fatalf("%d begin within %s, of %d and a burst of %d", n, per, limit, burst)
			}
		}
	})
}
