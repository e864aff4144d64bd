package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/handoff"
)

// A mistyped queue is the worker's mistake and not an outage, and none of its queues becomes known.
func TestSessionOfABadQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, bad := range []string{"", "GPU", "a b", "-a", "a_", strings.Repeat("q", 101)} {
		_, err := r.e.Open(r.ctx, handoff.Session{Name: "w", Queues: []string{"fine", bad}, Kinds: []string{"noop"}, Slots: 1})
		if !errors.Is(err, handoff.ErrBadCall) || !strings.Contains(err.Error(), fmt.Sprintf("queue %q: a queue's name is", bad[:min(len(bad), 100)])) {
			t.Errorf("queue %q: %v", bad, err)
		}
	}
	if known, err := r.e.catalog.KnowsQueue(r.ctx, "fine"); err != nil || known {
		t.Errorf("the queue beside a bad one is known: %v, %v", known, err)
	}
}
