package engine

import (
	"sync/atomic"

	"github.com/pawl-run/pawl/internal/flow"
)

// counters count what the engine has done since it started.
type counters struct {
	submitted, claimed, finished atomic.Int64
	fenced, refused, duplicates  atomic.Int64
	lost, lostSessions, gaps     atomic.Int64
	commits, requests            atomic.Int64
	failedCommits, conflicts     atomic.Int64
	purged                       atomic.Int64
}

// Stats is what an engine has done since it started. Counts are of this replica alone.
type Stats struct {
	Submitted    int64 `json:"submitted"`
	Claimed      int64 `json:"claimed"`
	Finished     int64 `json:"finished"`
	Fenced       int64 `json:"fenced"`     // reports of attempts that were over
	Refused      int64 `json:"refused"`    // reports that contradicted the history
	Duplicates   int64 `json:"duplicates"` // events that were known already
	Lost         int64 `json:"lost"`       // attempts recovered from lost or closed sessions
	LostSessions int64 `json:"lost_sessions"`
	Gaps         int64 `json:"gaps"` // attempts ended because an event never came
	Purged       int64 `json:"purged"`

	Commits       int64 `json:"commits"`
	Requests      int64 `json:"requests"` // in those commits
	FailedCommits int64 `json:"failed_commits"`
	Conflicts     int64 `json:"conflicts"`
	Pending       int   `json:"pending"` // requests waiting for a commit
	Takers        int   `json:"takers"`  // workers waiting for work
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	pending, takers := len(e.pending), len(e.takers)
	e.mu.Unlock()
	c := &e.counters
	return Stats{
		Submitted: c.submitted.Load(), Claimed: c.claimed.Load(), Finished: c.finished.Load(),
		Fenced: c.fenced.Load(), Refused: c.refused.Load(), Duplicates: c.duplicates.Load(),
		Lost: c.lost.Load(), LostSessions: c.lostSessions.Load(), Gaps: c.gaps.Load(), Purged: c.purged.Load(),
		Commits: c.commits.Load(), Requests: c.requests.Load(),
		FailedCommits: c.failedCommits.Load(), Conflicts: c.conflicts.Load(),
		Pending: pending, Takers: takers,
	}
}

func (c *counters) committed(requests int) {
	c.commits.Add(1)
	c.requests.Add(int64(requests))
}

// receipts counts what became of reports and says whether any was turned away.
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
