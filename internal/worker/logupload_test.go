package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// strict is an engine that refuses log chunks with some words, each a number of times.
type strict struct {
	*ledger
	word  string
	mu    sync.Mutex
	most  int
	noted int  // how often sending a note fails
	cut   bool // the first note, and everything after it, fails
	calls int
}

func (s *strict) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	s.ledger.mu.Lock()
	err := s.alive(session)
	s.ledger.mu.Unlock()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.calls++
	for _, c := range chunks {
		if bytes.Contains(c.Data, []byte(s.word)) && s.most != 0 {
			s.most--
			s.mu.Unlock()
			return fmt.Errorf("%w: %w: a bad word", handoff.ErrUnavailable, handoff.ErrBadCall)
		}
		if bytes.Contains(c.Data, []byte("were refused")) && s.cut {
			s.cut = false
			s.update(func() { s.deaf = true })
		} else if bytes.Contains(c.Data, []byte("were refused")) && s.noted > 0 {
			s.noted--
			s.mu.Unlock()
			return handoff.ErrUnavailable
		}
	}
	s.mu.Unlock()
	return s.ledger.Log(ctx, session, chunks)
}

// hostile is a case of logs with a bad word in one of them.
type hostile struct {
	most  int  // how often it is refused; -1: always
	noted int  // how often sending its note fails
	late  bool // the engine is away until the session has ended
	cut   bool // the session ends before the note is sent
	lost  bool // what is wanted
}

// A part of a log that the engine keeps refusing is dropped, and the parts beside and after it keep their places; a damaged one is sent
// again. The same holds for logs that are sent after the session has ended.
func TestRefusedLogs(t *testing.T) {
	for name, tc := range map[string]hostile{
		"bad for ever":                         {most: -1, lost: true},
		"damaged twice":                        {most: 2},
		"bad for ever, the note is lost":       {most: -1, noted: 3, lost: true},
		"bad for ever, the note comes late":    {most: -1, cut: true, lost: true},
		"late, bad for ever":                   {most: -1, late: true, lost: true},
		"late, damaged twice":                  {most: 3, late: true}, // once with the others
		"late, bad for ever, the note is lost": {most: -1, noted: 3, late: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				bad := "bad" + strings.Repeat("x", 100)
				e := &strict{ledger: g, word: "bad", most: tc.most, noted: tc.noted, cut: tc.cut}
				defer serve(t, g, worker.Options{Handoff: e, Handlers: writes(func(_ context.Context, t *task.Task) {
					if tc.late {
						<-time.After(5 * time.Second)
					}
					fmt.Fprint(t.Log("stdout"), "good")
					fmt.Fprint(t.Log("stderr"), bad)
					fmt.Fprint(t.Log("other"), "good as well")
				})})()
				id := g.submit(flow.Request{Kind: "x"})
				if tc.late {
					g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
					g.update(func() { g.deaf = true })
				}
				if tc.cut {
					g.until(t, "cut off", func() bool { return g.deaf })
				}
				if tc.late || tc.cut {
					<-time.After(2 * handoff.Lease)
					g.update(func() { g.deaf = false })
				}
				if d := g.ended(t, id); d.Attempt != 1 {
					t.Errorf("attempt %d", d.Attempt)
				}
				kept := map[string]string{}
				for _, c := range g.logs {
					kept[c.Stream] += string(c.Data)
				}
				if kept["stdout"] != "good" || kept["other"] != "good as well" {
					t.Errorf("what is beside the bad part: %q", kept)
				}
				switch got := kept["stderr"]; {
				case tc.lost && (len(got) != len(bad) || !strings.Contains(got, "103 bytes of the log were refused")):
					t.Errorf("in the place of what was dropped: %q", got)
				case !tc.lost && got != bad:
					t.Errorf("what was damaged on its way: %q", got)
				}
				if e.calls > 20 {
					t.Errorf("%d calls", e.calls)
				}
			})
		})
	}
}
