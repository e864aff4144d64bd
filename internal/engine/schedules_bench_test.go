package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkSchedules fires 10,000 schedules that are due in the same second, on SQLite in memory.
func BenchmarkSchedules(b *testing.B) {
	const schedules = 10_000
	r := newRig(b)
	r.toTheHour()
	var doc strings.Builder
	for i := range schedules {
		fmt.Fprintf(&doc, "kind: schedule\nname: s%d\nevery: 1h\noverlap: allow\nrun: {action: noop, input: {at: '${{ tick.local_date }}'}}\n---\n", i)
		if i%500 == 499 {
			r.define(strings.TrimSuffix(doc.String(), "---\n"))
			doc.Reset()
		}
	}
	r.tick(0)
	for b.Loop() {
		before := r.e.Stats().TicksFired
		r.clock.move(time.Hour, time.Hour, 0)
		for r.e.Stats().TicksFired < before+schedules {
			if _, err := r.e.fireDue(r.ctx, &tickClock{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
