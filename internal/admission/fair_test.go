package admission

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// line is a key's wait list as the engine keeps it.
type line struct {
	clock   int64
	last    map[string]int64
	waiting []standing
	arrival int64
}

type standing struct {
	ticket int64
	who    string
}

func (l *line) arrive(who string, weight int) {
	if len(l.waiting) == 0 {
		l.clock, l.last = 0, map[string]int64{}
	}
	l.arrival++
	tag, next := Tag(l.clock, l.last[who], weight)
	l.last[who] = next
	l.waiting = append(l.waiting, standing{FairTicket(tag, l.arrival), who})
	slices.SortStableFunc(l.waiting, func(a, b standing) int { return int(min(max(a.ticket-b.ticket, -1), 1)) })
}

func (l *line) admit() string {
	head := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.clock = max(l.clock, TagOf(head.ticket))
	return head.who
}

// An owner with executions waiting all the time gets slots by weight, within one turn of others, and keeps the order of arrival.
func TestWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &line{}
		weights := map[string]int{}
		var names []string
		for i := range rapid.IntRange(2, 5).Draw(t, "people") {
			who := fmt.Sprint("p", i)
			weights[who] = rapid.SampledFrom([]int{1, 2, 3, 4, 6, 12}).Draw(t, "weight")
			names = append(names, who)
		}
		// The first owner has been served alone for a while.
		for range rapid.IntRange(1, 30).Draw(t, "alone") {
			l.arrive("p0", weights["p0"])
		}
		for range rapid.IntRange(0, len(l.waiting)-1).Draw(t, "served") {
			l.admit()
		}
		total := 0
		for _, who := range names {
			total += weights[who]
			for range 40 * weights[who] {
				l.arrive(who, weights[who])
			}
		}
		got := map[string]int{}
		rounds := rapid.IntRange(1, 20).Draw(t, "rounds")
		for range rounds * total {
			got[l.admit()]++
		}
		for _, who := range names {
			if want := rounds * weights[who]; got[who] < want-weights[who]-1 || got[who] > want+weights[who]+1 {
				t.Fatalf("%s of weight %d had %d of %d slots, want %d: %v of %v", who, weights[who], got[who], rounds*total, want, got, weights)
			}
		}
	})
}
