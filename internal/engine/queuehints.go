package engine

// queueHints is what this replica believes about which queues hold something to claim. It is a hint: it is forgotten now
// and then, and a queue that nothing is known about may hold something.
type queueHints struct {
	empty map[string]bool // queues that were found empty
	// A transaction finds a queue empty as of its begin, and says so after its commit. What came into the queue meanwhile
	// must not be overlooked: clock counts arrivals, and came and all hold its value at the latest one.
	clock uint64
	came  map[string]uint64 // arrivals in a queue
	all   uint64            // arrivals anywhere: which queue is not known
	// recheck has claimers.claimable check all that wait, and not only those that came since the last check. It is set by
	// an arrival, and while some claimer may have something to claim; a check that finds none clears it. A new claimer
	// does not set it.
	recheck bool
}

func newQueueHints() queueHints {
	return queueHints{empty: map[string]bool{}, came: map[string]uint64{}}
}

// any reports whether one of the queues may hold something.
func (r *queueHints) any(queues []string) bool {
	for _, q := range queues {
		if !r.empty[q] {
			return true
		}
	}
	return false
}

// filled notes an arrival in a queue.
func (r *queueHints) filled(queue string) {
	r.clock++
	r.recheck = true
	r.came[queue] = r.clock
	delete(r.empty, queue)
}

// foundEmpty notes that a transaction found a queue empty, which began when the clock was asOf.
func (r *queueHints) foundEmpty(queue string, asOf uint64) {
	if r.came[queue] <= asOf && r.all <= asOf {
		r.empty[queue] = true
	}
}

// forget notes an arrival of which the queue is not known.
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
