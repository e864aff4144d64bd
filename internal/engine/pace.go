package engine

import (
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine/txn"
)

// pace is the share of its budget that each transaction may use now. It is measured by transactions of follow-ups,
// because callers wait for the rows that these lock: after one that took longer than followUpTime the share is smaller.
// Transactions of callers use the same share. 1,000 rows take 10 to 30 ms on a quiet machine; with PostgreSQL, the
// server, a worker and five hostile clients on 2 processors, they took 800 ms.
type pace struct {
	mu    sync.Mutex
	share float64 // 0: nothing is measured yet, and the whole budget may be used
}

const (
	followUpTime = 50 * time.Millisecond
	// leastShare is the least share, 100 rows, so that a slow disk does not stop follow-ups. Chosen, not measured.
	leastShare = 0.1
	// paceGrowth is the factor by which the share grows after a transaction that used its budget in less than half of followUpTime. It is
	// below 2, because a doubled budget could take longer than followUpTime.
	paceGrowth = 1.5
)

// of is the usable part of a budget.
func (p *pace) of(b txn.Budget) txn.Budget {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.share == 0 {
		return b
	}
	return txn.Budget{Rows: max(1, int(p.share*float64(b.Rows))), Bytes: max(1, int(p.share*float64(b.Bytes))), Work: max(1, int(p.share*float64(b.Work)))}
}

// took records how long a transaction of follow-ups took, and whether it used its budget.
func (p *pace) took(d time.Duration, spent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.share == 0 {
		p.share = 1
	}
	switch {
	case d > followUpTime:
		p.share = max(leastShare, p.share*float64(followUpTime)/float64(d))
	case spent && d < followUpTime/2:
		p.share = min(1, p.share*paceGrowth)
	}
}
