package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// With any arrivals, at most limit + burst begin in any span, none begins before it comes, and they begin in the order of arrival; arrivals
// slower than the rate are not delayed.
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
