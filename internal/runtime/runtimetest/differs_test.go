//go:build unix

package runtimetest

import (
	"strings"
	"testing"
)

// TestDiffers lists a failure, a success and a key that is never used.
func TestDiffers(t *testing.T) {
	e := expect(Differs{"fails": "it must", "passes": "it was thought", "12/forgotten": "nobody asks"})
	outer := &recorder{TB: t}
	e.check(outer, "fails", func(t testing.TB) { t.Fatalf("as it does") })
	if outer.Failed() {
		t.Errorf("a listed failure was reported: %v", outer.said)
	}
	e.check(outer, "other", func(t testing.TB) {})
	if outer.Failed() {
		t.Errorf("a success was reported: %v", outer.said)
	}
	e.check(outer, "passes", func(testing.TB) {})
	e.finish(outer, "")
	if said := strings.Join(outer.said, "\n"); !strings.Contains(said, "passes is listed") ||
		!strings.Contains(said, "12/forgotten is listed") || len(outer.said) != 2 {
		t.Errorf("reported %q", said)
	}
}
