package engine

import "testing"

// If a transaction finds a queue empty while work arrives in it, claimers must not wait for the next arrival.
func TestReadiness(t *testing.T) {
	t.Parallel()
	r := newQueueHints()
	q := []string{"q"}
	if !r.any(q) {
		t.Error("a queue that nothing is known about counts as empty")
	}
	scanned := r.clock
	r.foundEmpty("q", scanned)
	if r.any(q) {
		t.Error("an empty queue counts as filled")
	}
	scanned = r.clock
	r.filled("q")
	r.foundEmpty("q", scanned)
	if !r.any(q) {
		t.Error("what came during a look is forgotten")
	}
	scanned = r.clock
	r.forget()
	r.foundEmpty("q", scanned)
	if !r.any(q) {
		t.Error("what may have come anywhere during a look is forgotten")
	}
	r.foundEmpty("q", r.clock)
	if r.any(q) {
		t.Error("a queue that was looked into since counts as filled")
	}
}
