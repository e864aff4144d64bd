package engine

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// wideFrom is the number of children from which on a workflow's transactions are kept as changes, and its state in memory. Below it the
// children are counted each time: 64 take 20 µs on SQLite and 40 µs on PostgreSQL, about what a change costs.
const wideFrom = 64

// progress is the progress of one attempt of a workflow, as this replica follows it.
type progress struct {
	workflowAttempt store.WorkflowAttempt
	tracker         *orchestration.Tracker // nil: only the items are known
	items           orchestration.Items
	created         int   // children in all
	change          int64 // number of the last change that the tracker includes

	wideFrom     int   // Options.Wide
	loan         *loan // of the transaction that has borrowed it
	lists, bytes int   // of the items: lists that have been measured, and their bytes
}

// wide reports whether the workflow has enough children for its changes to be kept.
func (p *progress) wide() bool { return p.created >= p.wideFrom }

// Sizes that size adds up. The last two are estimates, not measured: they only decide when followedBytes are used up.
const (
	sliceHeader   = 24  // bytes of a slice beside its elements, on 64 bits
	progressBytes = 500 // of a progress beside its items: the structs, and its entries in maps and in the list
	taskBytes     = 150 // of a tracker for each task
)

// size is about how many bytes of memory the progress takes. Evaluated lists never change, and are measured once.
func (p *progress) size() int {
	if len(p.items) != p.lists {
		p.lists, p.bytes = len(p.items), 0
		for _, items := range p.items {
			for _, item := range items {
				p.bytes += sliceHeader + len(item)
			}
		}
	}
	n := progressBytes + p.bytes
	if p.tracker != nil {
		n += taskBytes * len(p.tracker.State().Tasks)
	}
	return n
}

// count rebuilds the progress from the store's counts; nil is an attempt without rows.
func (p *progress) count(def *definition.Workflow, l *store.LockedWorkflow) {
	st := &orchestration.State{Tasks: make([]orchestration.Progress, len(def.Tasks))}
	if p.created, p.change = 0, 0; l != nil {
		p.created, p.change = created(l), l.Last
		for i := range l.Tasks {
			if task := def.Task(l.Tasks[i].Task); task != nil {
				readProgress(&st.Tasks[task.Index], &l.Tasks[i])
			}
		}
	}
	p.tracker = orchestration.Track(def, st)
}

// created is how many children the rows of a workflow show.
func created(l *store.LockedWorkflow) (n int) {
	for i := range l.Tasks {
		n += l.Tasks[i].Created
	}
	return n
}

// apply updates the progress with changes of other transactions.
func (p *progress) apply(l *store.LockedWorkflow) error {
	first := l.Last - int64(len(l.Changes)) + 1
	for i, text := range l.Changes {
		if first+int64(i) <= p.change {
			continue // another transaction returned it after this one had asked
		}
		created, err := p.tracker.Apply(text)
		if err != nil {
			return err
		}
		p.created += created
		p.change = first + int64(i)
	}
	return nil
}

// readProgress copies the rows of one task.
func readProgress(p *orchestration.Progress, r *store.TaskProgress) {
	p.Created, p.Open = r.Created, r.Open
	p.Completed, p.Failed = r.Ended[flow.Completed], r.Ended[flow.Failed]
	p.Cancelled, p.TimedOut = r.Ended[flow.Cancelled], r.Ended[flow.TimedOut]
	if m := r.Mark; m != nil {
		p.Mark, p.Total, p.Error = orchestration.MarkNamed(m.State), m.Total, m.Error
	}
}

// followed caches the progress of running workflows: of those with many children, so that their rows need not be counted at each end, and
// the evaluated lists of foreach tasks. A transaction borrows an entry and changes it; entries returned after a commit are kept, and
// changes without a commit are dropped. All of it is a hint: missing entries are counted or evaluated again.
type followed struct {
	mu    sync.Mutex
	known map[store.WorkflowAttempt]*list.Element // of *progress, the last used first
	order *list.List
	lent  map[store.WorkflowAttempt]*loan
	size  int

	wideFrom int
}

// loan is an entry that a transaction has borrowed.
type loan struct {
	change int64         // as progress.change was then
	back   chan struct{} // closed when it has been returned
}

// followedBytes bounds the cache, in bytes of memory.
const followedBytes = 64 << 20

// lentFor is how long a transaction waits for an entry that another one of this process has borrowed. It holds the workflow's lock, so the
// borrowing transaction has ended in the store: it is about to return the entry, or waits for an answer on a lost connection. After lentFor
// the workflow's children are counted instead. Chosen, not measured.
const lentFor = 50 * time.Millisecond

func newFollowed(wideFrom int) *followed {
	return &followed{wideFrom: wideFrom, known: map[store.WorkflowAttempt]*list.Element{}, order: list.New(), lent: map[store.WorkflowAttempt]*loan{}}
}

// begin is the progress of a workflow that is not known yet.
func (f *followed) begin(workflowAttempt store.WorkflowAttempt) *progress {
	return &progress{workflowAttempt: workflowAttempt, items: orchestration.Items{}, wideFrom: f.wideFrom}
}

// peek is the number of the last known change of a workflow, for a transaction that does not have its lock yet.
func (f *followed) peek(workflowAttempt store.WorkflowAttempt) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.lent[workflowAttempt]; l != nil {
		return l.change
	}
	if e := f.known[workflowAttempt]; e != nil {
		return known(e.Value.(*progress))
	}
	return store.NothingKnown
}

// known is the number of the last change that a progress includes.
func known(p *progress) int64 {
	if p.tracker == nil {
		return store.NothingKnown
	}
	return p.change
}

// borrow removes and returns the progress of a workflow whose lock the caller has; nil if it is not known.
func (f *followed) borrow(ctx context.Context, workflowAttempt store.WorkflowAttempt) *progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.lent[workflowAttempt]; l != nil {
		f.mu.Unlock()
		timer := time.NewTimer(lentFor)
		select {
		case <-l.back:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		f.mu.Lock()
	}
	e := f.known[workflowAttempt]
	if e == nil {
		return nil
	}
	p := f.remove(e)
	p.loan = &loan{change: known(p), back: make(chan struct{})}
	f.lent[workflowAttempt] = p.loan
	return p
}

// giveBack ends a transaction's use of workflows: after a commit it keeps their progress.
func (f *followed) giveBack(all map[store.WorkflowAttempt]*progress, committed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range all {
		if p.loan != nil {
			close(p.loan.back)
			if f.lent[p.workflowAttempt] == p.loan {
				delete(f.lent, p.workflowAttempt)
			}
			p.loan = nil
		}
		if committed {
			f.keep(p)
		}
	}
}

func (f *followed) keep(p *progress) {
	if !p.wide() {
		p.tracker = nil // other transactions change it without a record
	}
	if p.tracker == nil && len(p.items) == 0 {
		return
	}
	if e := f.known[p.workflowAttempt]; e != nil {
		if known(e.Value.(*progress)) > known(p) {
			return // a transaction that committed later has returned it first
		}
		f.remove(e)
	}
	f.known[p.workflowAttempt] = f.order.PushFront(p)
	for f.size += p.size(); f.size > followedBytes && f.order.Len() > 0; {
		f.remove(f.order.Back())
	}
}

func (f *followed) remove(e *list.Element) *progress {
	p := f.order.Remove(e).(*progress)
	delete(f.known, p.workflowAttempt)
	f.size -= p.size()
	return p
}
