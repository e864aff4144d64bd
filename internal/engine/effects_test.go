package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// One transaction may write an execution twice: a late report, and then the end of its worker's session. The second
// write is counted once.
func TestWhatAnExecutionWrittenTwiceCounts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	session := flow.ID{9}
	for name, c := range map[string]struct {
		second                  func(*flow.Draft) error
		lost, handedBack, aside int
	}{
		"handed back": {func(d *flow.Draft) error { return d.HandBack(flow.ReasonShutDown, at) }, 0, 1, 0},
		"lost":        {func(d *flow.Draft) error { return d.Lose("the worker is gone", at, 0) }, 1, 0, 0},
		"put aside":   {func(d *flow.Draft) error { d.PutAside("refused", at); return nil }, 0, 0, 1},
	} {
		d := flow.Submit(flow.ID{1}, flow.Request{Kind: flow.KindNoop, CreatedAt: at})
		for _, decide := range []func() error{func() error { return d.Schedule(1, at) }, func() error { return d.Claim(session, "w", at) }} {
			if err := decide(); err != nil {
				t.Fatal(err)
			}
		}
		var f effects
		write := func() {
			seen := *d
			f.wrote(&seen)
			d.Before, d.New, d.Events = d.State, false, nil
		}
		write()
		if err := c.second(d); err != nil {
			t.Fatal(err)
		}
		write()
		if len(f.written) != 2 || len(f.lost) != c.lost || len(f.handedBack) != c.handedBack || len(f.aside) != c.aside {
			t.Errorf("%s: %d writes, %d lost, %d handed back, %d put aside", name, len(f.written), len(f.lost), len(f.handedBack), len(f.aside))
		}
	}
}
