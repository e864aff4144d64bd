package admission

import (
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"pgregory.net/rapid"
)

func TestArrive(t *testing.T) {
	for _, c := range []struct {
		name                    string
		holders, waiting, limit int
		when                    flow.WhenFull
		want                    Verdict
	}{
		{"a free slot", 1, 0, 2, "", Admit},
		{"full", 2, 0, 2, "", Wait},
		{"a free slot but others wait", 1, 1, 2, "", Wait},
		{"over a lowered limit", 5, 0, 2, flow.WhenFullQueue, Wait},
		{"full and unwilling", 2, 0, 2, flow.WhenFullCancelNew, Refuse},
		{"full and pushing", 2, 0, 2, flow.WhenFullCancelOldest, Supersede},
		{"free and pushing", 0, 0, 2, flow.WhenFullCancelOldest, Admit},
	} {
		if got := Arrive(c.holders, c.waiting, c.limit, c.when); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestReturn(t *testing.T) {
	for _, c := range []struct {
		name           string
		holders, limit int
		when           flow.WhenFull
		want           Verdict
	}{
		{"a free slot", 1, 2, "", Admit},
		{"full", 2, 2, "", Wait},
		{"over a lowered limit", 3, 2, flow.WhenFullQueue, Wait},
		{"full and accepted before", 2, 2, flow.WhenFullCancelNew, Wait},
		{"full and another has come", 2, 2, flow.WhenFullCancelOldest, Replaced},
		{"free, of a key for the latest", 0, 1, flow.WhenFullCancelOldest, Admit},
	} {
		if got := Return(c.holders, c.limit, c.when); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSupersedes(t *testing.T) {
	for _, c := range []struct {
		name                            string
		holders, waiting, ending, limit int
		want                            bool
	}{
		{"full and no line", 1, 0, 0, 1, true},
		{"the one before it waits for the only slot", 1, 1, 0, 1, false},
		{"the one before it gets the slot of a holder that is ending", 2, 1, 1, 2, true},
		{"every holder is ending", 2, 2, 2, 2, true}, // there is none left, which the caller sees
		{"a slot is being freed for it", 2, 0, 1, 2, false},
		{"over a lowered limit", 3, 0, 0, 1, false},
		{"a free slot that the head of the line must not have", 1, 1, 0, 2, true},
	} {
		if got := Supersedes(c.holders, c.waiting, c.ending, c.limit); got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
}

// Whatever arrives, leaves and changes: holders never grow above the limit, and no slot stays free while an execution waits.
func TestLimitHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, holders, waiting := rapid.IntRange(1, 5).Draw(t, "limit"), 0, 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := holders
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				switch Arrive(holders, waiting, limit, flow.WhenFullQueue) {
				case Admit:
					holders++
				case Wait:
					waiting++
				}
			case 1:
				holders = max(0, holders-1)
			case 2:
				limit = rapid.IntRange(1, 5).Draw(t, "limit")
			}
			n := Admissible(holders, waiting, limit)
			holders, waiting = holders+n, waiting-n
			if holders > limit && holders > before {
				t.Fatalf("%d holders over limit %d", holders, limit)
			}
			if waiting > 0 && holders < limit {
				t.Fatalf("%d wait while %d of %d slots are free", waiting, limit-holders, limit)
			}
		}
	})
}
