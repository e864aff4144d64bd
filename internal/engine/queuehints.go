package engine

import "slices"

// queueHints is what this replica believes about which queues hold work. It is a hint: it is dropped from time to time, and a queue without
// a hint may hold work.
type queueHints struct {
	empty map[string]bool // queues that were found empty
	// A transaction finds a queue empty as of its beginning, and records that after its commit. Arrivals in between must not be missed: clock
	// counts arrivals, and came and all hold its value at the latest one.
	clock uint64
	came  map[string]uint64 // arrivals in a queue
	all   uint64            // arrivals in an unknown queue
	// recheck makes claimers.claimable check all waiting claimers, and not only those that came since the last check. It is set by an arrival,
	// and while a claimer may have work; a check that finds none clears it. A new claimer does not set it.
	recheck bool
}

func newQueueHints() queueHints {
	return queueHints{empty: map[string]bool{}, came: map[string]uint64{}}
}

// any reports whether one of the queues may hold work.
func (r *queueHints) any(queues []string) bool {
	return slices.ContainsFunc(queues, func(q string) bool { return !r.empty[q] })
}

func (r *queueHints) filled(queue string) {
	r.clock++
	r.recheck = true
	r.came[queue] = r.clock
	delete(r.empty, queue)
}

// foundEmpty records that a transaction, which began when the clock was asOf, found a queue empty.
func (r *queueHints) foundEmpty(queue string, asOf uint64) {
	if r.came[queue] <= asOf && r.all <= asOf {
		r.empty[queue] = true
	}
}

// forget records an arrival in an unknown queue.
func (r *queueHints) forget() {
	r.clock++
	r.recheck = true
	r.all = r.clock
	clear(r.empty)
	clear(r.came)
}

// queueClock is the clock now, for queueHints.foundEmpty.
func (e *Engine) queueClock() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.claimers.queues.clock
}
