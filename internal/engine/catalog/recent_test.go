package catalog

import (
	"testing"
	"testing/synctest"
	"time"
)

// After three quarters of LatestFor, one of 100 callers asks the store again, and the other 99 use the known version. After LatestFor all
// of them ask. The clock is that of the bubble.
func TestRecent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recent[int]
		asking := func() (n int) {
			for range 100 {
				if _, ok := r.get("resize"); !ok {
					n++
				}
			}
			return n
		}
		r.keep("resize", 1, 1, time.Now())
		if n := asking(); n != 0 {
			t.Errorf("%d callers ask for what was just heard", n)
		}
		time.Sleep(LatestFor * 4 / 5)
		if n := asking(); n != 1 {
			t.Errorf("%d callers ask ahead", n)
		}
		r.keep("resize", 2, 2, time.Now())
		if v, ok := r.get("resize"); !ok || v != 2 {
			t.Errorf("the answer is %d, %t", v, ok)
		}
		time.Sleep(LatestFor * 4 / 5)
		asking() // one of them; it gets no answer
		time.Sleep(LatestFor / 5)
		if n := asking(); n != 100 {
			t.Errorf("%d callers do not take what is too old", n)
		}
	})
}
