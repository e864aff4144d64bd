package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/txn"
)

// Slow follow-ups are followed by smaller ones, and by larger ones again once they are quick.
func TestPaceOfFollowUps(t *testing.T) {
	t.Parallel()
	full := txn.Budget{Rows: 1000, Bytes: 4000, Work: 2000}
	for _, c := range []struct {
		name  string
		took  []time.Duration
		spent bool
		rows  int
	}{
		{"none yet", nil, true, 1000},
		{"quick ones", []time.Duration{time.Millisecond, 20 * time.Millisecond}, true, 1000},
		{"a slow one", []time.Duration{2 * followUpTime}, true, 500},
		{"a slow one that did little", []time.Duration{2 * followUpTime}, false, 500},
		{"a database that stood still", []time.Duration{time.Minute}, true, 100},
		{"in time", []time.Duration{2 * followUpTime, followUpTime}, true, 500},
		{"quick again", []time.Duration{2 * followUpTime, followUpTime / 4}, true, 750},
		{"quick again, and small", []time.Duration{2 * followUpTime, followUpTime / 4}, false, 500},
		{"quick for long", []time.Duration{time.Minute, 1, 1, 1, 1, 1, 1, 1}, true, 1000},
	} {
		var p pace
		for _, d := range c.took {
			p.took(d, c.spent)
		}
		if got := p.of(full); got.Rows != c.rows || got.Bytes != 4*c.rows {
			t.Errorf("after %s a transaction may use %+v, not %d rows", c.name, got, c.rows)
		}
	}
	if got := (&pace{share: leastShare}).of(txn.Budget{Rows: 3, Bytes: 3, Work: 3}); got != (txn.Budget{Rows: 1, Bytes: 1, Work: 1}) {
		t.Errorf("of a budget of 3 rows %+v are left: a transaction must get on", got)
	}
}
