package engine

// queueHints is what this replica believes about which queues hold something to claim. It is a hint: it is forgotten now
// and then, and a queue that nothing is known about may hold something.
type queueHints struct {
	empty map[string]bool // queues that were found empty
	// A transaction that finds a queue empty began to look a moment ago: what has come since must not be forgotten over it.
	clock uint64            // counts what is said to have come
	came  map[string]uint64 // when something was last said to have come into a queue
	all   uint64            // when that was last said of every queue
	// recheck has claimers.claimable check all that wait, and not only those that came since. It is set when something is said to have come
	// and while some claimer may have something to claim; a check that finds none clears it. A new claimer does not set it.
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

// filled says that something has come into a queue.
func (r *queueHints) filled(queue string) {
	r.clock++
	r.recheck = true
	r.came[queue] = r.clock
	delete(r.empty, queue)
}

// foundEmpty says that a queue was found empty by a transaction that began when the clock was asOf.
func (r *queueHints) foundEmpty(queue string, asOf uint64) {
	if r.came[queue] <= asOf && r.all <= asOf {
		r.empty[queue] = true
	}
}

// forget says that anything may have come anywhere.
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
