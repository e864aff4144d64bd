package engine

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// counters count what the engine has done since its start.
type counters struct {
	submitted, claimed          atomic.Int64
	ended                       byStatus[atomic.Int64]
	fenced, refused, duplicates atomic.Int64
	lost, handedBack            atomic.Int64
	lostSessions, gaps          atomic.Int64
	commits, requests           atomic.Int64
	failedCommits, conflicts    atomic.Int64
	longest, computed           maximum // of one transaction's decision: nanoseconds, and operations of users' expressions
	purged, skipped, aside      atomic.Int64
	ticksFired                  atomic.Int64
	ticksMissed                 [len(missedWhys)]atomic.Int64
	signals                     [8]atomic.Int64                          // by kind of source, as flow.SourceKinds has them
	enforcements                [flow.EnforcementFailed + 1]atomic.Int64 // by state
}

// maximum is the largest value it has been given.
type maximum struct{ atomic.Int64 }

func (m *maximum) raise(to int64) {
	for now := m.Load(); to > now && !m.CompareAndSwap(now, to); now = m.Load() {
	}
}

// byStatus holds one value for each final status: the last ones of flow.Stages.
type byStatus[T any] [flow.TimedOut - flow.Completed + 1]T

func (b *byStatus[T]) as(s flow.Stage) *T { return &b[s-flow.Completed] }

// Stats is what an engine has done since its start. Counts are of this replica alone.
type Stats struct {
	Submitted    int64 `json:"submitted"`
	Claimed      int64 `json:"claimed"`
	Finished     int64 `json:"finished"`    // of any status
	Fenced       int64 `json:"fenced"`      // reports of attempts that had ended
	Refused      int64 `json:"refused"`     // reports that contradicted the history
	Duplicates   int64 `json:"duplicates"`  // events that were known already
	Lost         int64 `json:"lost"`        // attempts taken back from lost workers, and from workers that lost their history
	HandedBack   int64 `json:"handed_back"` // attempts that their workers gave up: shut down, or their machine or server was gone
	LostSessions int64 `json:"lost_sessions"`
	Gaps         int64 `json:"gaps"` // attempts ended because an event never came
	Purged       int64 `json:"purged"`
	Skipped      int64 `json:"skipped"`    // executions that a loop could not handle and skipped
	PutAside     int64 `json:"put_aside"`  // refused decisions whose executions were put aside
	Unreadable   int   `json:"unreadable"` // rows of live executions that the store cannot decode and skips

	TicksFired  int64            `json:"ticks_fired"`
	TicksMissed map[string]int64 `json:"ticks_missed"` // of schedules that were neither paused nor edited, by reason; each reason has one

	Signals      map[string]int64 `json:"signals"`      // accepted, by kind of source
	Enforcements map[string]int64 `json:"enforcements"` // by state

	Commits       int64 `json:"commits"`
	Requests      int64 `json:"requests"` // in those commits
	FailedCommits int64 `json:"failed_commits"`
	Conflicts     int64 `json:"conflicts"`
	// LongestDecision is the longest decision of one transaction, for which other requests had to wait, and MostComputed the most operations
	// of users' expressions in one.
	LongestDecision time.Duration `json:"longest_decision"`
	MostComputed    int64         `json:"most_computed"`
	Pending         int           `json:"pending"` // requests waiting for a commit
	Takers          int           `json:"takers"`  // workers waiting for work

	Ended map[flow.Stage]int64 `json:"ended"` // Finished by status; every status has its count

	CommitAge  time.Duration `json:"commit_age"`  // of the oldest running transaction of the committers; 0: none
	PendingAge time.Duration `json:"pending_age"` // of the oldest request that waits for one; 0: none

	Retention time.Duration `json:"retention"`         // 0: ended executions are kept for ever
	Retained  time.Time     `json:"retained,omitzero"` // when retention last finished a pass over all ended executions; zero: not yet
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	pending, takers := e.batcher.pending()+e.batcher.followUps.len(), len(e.claimers.waiting)
	commitAge, pendingAge := e.batcher.ages(time.Now())
	e.mu.Unlock()
	c := &e.counters
	s := Stats{
		Submitted: c.submitted.Load(), Claimed: c.claimed.Load(), Ended: map[flow.Stage]int64{},
		Fenced: c.fenced.Load(), Refused: c.refused.Load(), Duplicates: c.duplicates.Load(),
		Lost: c.lost.Load(), HandedBack: c.handedBack.Load(), LostSessions: c.lostSessions.Load(), Gaps: c.gaps.Load(),
		Purged: c.purged.Load(), Skipped: c.skipped.Load(), PutAside: c.aside.Load(), Unreadable: e.opts.Store.Unreadable(),
		TicksFired: c.ticksFired.Load(), TicksMissed: map[string]int64{},
		Signals: map[string]int64{}, Enforcements: map[string]int64{},
		Commits: c.commits.Load(), Requests: c.requests.Load(),
		FailedCommits: c.failedCommits.Load(), Conflicts: c.conflicts.Load(),
		LongestDecision: time.Duration(c.longest.Load()), MostComputed: c.computed.Load(),
		Pending: pending, Takers: takers, CommitAge: commitAge, PendingAge: pendingAge,
		Retention: max(0, e.opts.Retention),
	}
	for i, why := range missedWhys {
		s.TicksMissed[why] = c.ticksMissed[i].Load()
	}
	for i, kind := range flow.SourceKinds {
		s.Signals[kind] = c.signals[i].Load()
	}
	for state := flow.EnforcementRan; state <= flow.EnforcementFailed; state++ {
		s.Enforcements[state.String()] = c.enforcements[state].Load()
	}
	for stage := flow.Completed; stage <= flow.TimedOut; stage++ {
		n := c.ended.as(stage).Load()
		s.Ended[stage], s.Finished = n, s.Finished+n
	}
	if at := e.retained.Load(); at != 0 {
		s.Retained = time.UnixMicro(at)
	}
	return s
}

func (c *counters) emitted(source string) {
	kind, _, _ := strings.Cut(source, ":")
	if i := slices.Index(flow.SourceKinds, kind); i >= 0 {
		c.signals[i].Add(1)
	}
}

func (c *counters) committed(requests int) {
	c.commits.Add(1)
	c.requests.Add(int64(requests))
}

// receipts counts the verdicts on reports and returns whether any was turned away.
func (c *counters) receipts(rs []flow.Receipt) (away bool) {
	for i := range rs {
		switch rs[i].Verdict {
		case flow.Fenced, flow.Unknown:
			c.fenced.Add(1)
			away = true
		case flow.Refused:
			c.refused.Add(1)
			away = true
		}
		if n := rs[i].Duplicates; n > 0 {
			c.duplicates.Add(int64(n))
		}
	}
	return away
}
