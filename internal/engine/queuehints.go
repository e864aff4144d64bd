package engine

// queueHints is what this replica believes about which queues hold something to claim. It is a hint: it is forgotten now
// and then, and a queue that nothing is known about may hold something.
type queueHints struct {
	dry map[string]bool // queues that were found empty
	// A transaction that finds a queue empty began to look a moment ago: what has come since must not be forgotten over it.
	clock   uint64
	came    map[string]uint64 // when something was last said to have come into a queue
	all     uint64            // when that was last said of every queue
	changed bool              // something came, or a claimer did, since no claimer was found to have anything to claim
}

func newQueueHints() queueHints {
	return queueHints{dry: map[string]bool{}, came: map[string]uint64{}}
}

// any reports whether one of the queues may hold something.
func (r *queueHints) any(queues []string) bool {
	for _, q := range queues {
		if !r.dry[q] {
			return true
		}
	}
	return false
}

// filled says that something has come into a queue.
func (r *queueHints) filled(queue string) {
	r.clock++
	r.changed = true
	r.came[queue] = r.clock
	delete(r.dry, queue)
}

// empty says that a queue was found empty by a transaction that began to look at the moment.
func (r *queueHints) empty(queue string, moment uint64) {
	if r.came[queue] <= moment && r.all <= moment {
		r.dry[queue] = true
	}
}

// forget says that anything may have come anywhere.
func (r *queueHints) forget() {
	r.clock++
	r.changed = true
	r.all = r.clock
	clear(r.dry)
	clear(r.came)
}

// queueMoment is now, for queueHints.empty.
func (e *Engine) queueMoment() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.claimers.queues.clock
}
