package engine

import "testing"

// A claimer without work is checked again when work may have come, and not for each other claimer.
func TestClaimersAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	c := claimers{queues: newQueueHints()}
	add := func(queues ...string) *claimer {
		k := &claimer{queues: queues}
		c.add(k)
		return k
	}
	claimable := func(want ...*claimer) {
		t.Helper()
		got := c.claimable()
		if len(got) != len(want) {
			t.Fatalf("%d claimers, not %d", len(got), len(want))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("claimer %d is another", i)
			}
		}
	}
	dry := func(q string) { c.queues.foundEmpty(q, c.queues.clock) }
	dry("a")
	dry("b")
	first, second := add("a"), add("b")
	claimable()
	if c.checked != 2 {
		t.Errorf("%d of 2 were looked at", c.checked)
	}
	third := add("a", "b")
	if c.pullLate(map[string]bool{}) != nil {
		t.Error("one was pulled, and all queues are empty")
	}
	claimable()
	c.queues.filled("b")
	if got := c.pullLate(map[string]bool{"b": true}); got != nil {
		t.Error("one was pulled for a queue that the transaction has found empty")
	}
	if got := c.pullLate(map[string]bool{}); got != second {
		t.Error("the one that has waited longest was not pulled")
	}
	claimable(third)
	dry("b")
	c.withdraw(first)
	fourth := add("c")
	claimable(fourth)
	if c.checked != 0 || len(c.waiting) != 0 {
		t.Errorf("%d wait and %d were looked at: none is left", len(c.waiting), c.checked)
	}
}
