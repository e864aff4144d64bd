package engine

import (
	"testing"
	"time"
)

// A few requests wait for the transaction under way, but not for one that has shown to be slow, also when another has been
// under way beside it since.
func TestFewWaitForNobodySlow(t *testing.T) {
	e, err := New(Options{Store: &mute{}})
	if err != nil {
		t.Fatal(err)
	}
	gathered := func(want int) (began time.Time) {
		t.Helper()
		ops, _, began, again := e.gather(t.Context())
		if len(ops) != want || (again == nil) == (want == 0) {
			t.Fatalf("gathered %d requests, not %d; to be tried again: %t", len(ops), want, again != nil)
		}
		return began
	}
	request := func() {
		t.Helper()
		if err := e.enqueue(&foldOp{}); err != nil {
			t.Fatal(err)
		}
	}
	request()
	gathered(1)
	request()
	gathered(0)
	e.busy[0] = e.busy[0].Add(-besideAfter)
	quick := gathered(1)
	request()
	gathered(0)
	e.over(quick)
	quick = gathered(1)
	e.over(e.busy[0])
	request()
	gathered(0)
	e.over(quick)
	gathered(1)
}
