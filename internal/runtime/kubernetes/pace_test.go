package kubernetes

import (
	"slices"
	"testing"
	"time"
)

// A keeper is tried when keepers usually answer: twice if one pod starts, once if several do, and again when the kubelet has reported it.
func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	placed := time.Now()
	asked := func(tr *tries, told time.Duration) (at []time.Duration) {
		for d := time.Duration(0); d <= 30*time.Second; d += 10 * time.Millisecond {
			if tr.due(placed.Add(d), told > 0 && d >= told) {
				at = append(at, d)
				tr.failed(placed.Add(d))
			}
		}
		return at
	}
	first := p.begin(placed)
	if at := asked(first, 0); len(at) != 3 || at[0] != 450*time.Millisecond || at[1] != 700*time.Millisecond || at[2] != 20700*time.Millisecond {
		t.Errorf("alone, and never told of: %v", at)
	}
	second := p.begin(placed)
	if at := asked(second, 2*time.Second); len(at) < 5 || at[0] != 450*time.Millisecond || at[1] != 2*time.Second || at[2] != 2060*time.Millisecond || at[len(at)-1]-at[len(at)-2] > dialMost+10*time.Millisecond {
		t.Errorf("beside another, and told of: %v", at)
	}
	first.end(placed.Add(time.Second)) // the usual time, until there are more
	second.end(time.Time{})            // did not start: no information
	third := p.begin(placed)
	if at := asked(third, 0); at[0] != 900*time.Millisecond {
		t.Errorf("after one of a second: %v", at)
	}
	third.end(placed.Add(2 * time.Second))
	if p.usual != 1200*time.Millisecond || p.open != 0 {
		t.Errorf("usually %v, %d open", p.usual, p.open)
	}
}

// If tries have reached no keeper, most pods that start beside others are not tried early, until one reaches its keeper again.
func TestPaceInVain(t *testing.T) {
	t.Parallel()
	var p pace
	placed := time.Now()
	early := func(pods int) (tried int) {
		var all []*tries // all start before any of them is tried
		for range pods {
			all = append(all, p.begin(placed))
		}
		for _, tr := range all {
			if tr.due(placed.Add(10*time.Second), false) {
				tried++
				tr.failed(placed.Add(10 * time.Second))
			}
			if !tr.due(placed.Add(11*time.Second), true) {
				t.Error("a keeper that the kubelet reports is not tried")
			}
			defer tr.end(time.Time{})
		}
		return tried
	}
	if tried := early(500); tried != 1+paceVain+(499-paceVain)/paceProbe { // the first is alone
		t.Errorf("%d of 500 pods were tried in vain", tried)
	}
	for {
		if tr := p.begin(placed); tr.due(placed.Add(time.Second), false) {
			tr.end(placed.Add(time.Second))
			break
		}
	}
	if tried := early(paceVain); tried != paceVain {
		t.Errorf("after a try that met its keeper %d of %d were tried", tried, paceVain)
	}
}

// If many pods start on a slow node, keepers that the kubelet never reports are tried in turn, too.
func TestPaceOfManySlowPods(t *testing.T) {
	t.Parallel()
	var p pace
	placed := time.Now()
	var all []*tries
	for range 20 {
		all = append(all, p.begin(placed))
	}
	early, late := 0, 0
	for d := time.Duration(0); d <= 3*time.Minute; d += 100 * time.Millisecond {
		for _, tr := range all {
			if now := placed.Add(d); tr.due(now, false) {
				tr.failed(now)
				if d < 10*time.Second {
					early++
				} else {
					late++
				}
			}
		}
	}
	if early > 1+paceTries+paceVain+paceProbe/5 || late < 20 || late > 60 { // 20 each minute
		t.Errorf("20 pods were tried %d times early and %d times in the three minutes after that", early, late)
	}
}

// The worker asks for a silent pod's events every minute, and for those of many silent pods in turn: together at most once per
// startsApart.
func TestPaceOfEvents(t *testing.T) {
	t.Parallel()
	placed := time.Now()
	for pods, most := range map[int]int{1: 10, 100: 200} { // in ten minutes
		var p pace
		var all []*tries
		for range pods {
			all = append(all, p.begin(placed))
		}
		sum := 0
		each := make([]int, pods)
		for d := time.Duration(0); d <= 10*time.Minute; d += time.Second {
			for i, tr := range all {
				if tr.asksEvents(placed.Add(d)) {
					each[i]++
					sum++
				}
			}
		}
		if least := slices.Min(each); least == 0 || sum > most || sum < most-10 {
			t.Errorf("%d pods ask %d times, and one of them %d times, want up to %d and 1", pods, sum, least, most)
		}
	}
}
