package worker

import (
	"encoding/binary"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// remembered recognises attempts that the session has finished, declined or lost, for at least a lease: the same
// hand-off may come twice, the second time much later. It keeps the attempts of the current third of a lease and of the
// three thirds before, eight bytes of each, because a worker that ends 46,000 attempts a second has 1.8 million of
// them.
type remembered struct {
	parts [4]map[uint64]struct{} // the current one first
	since time.Time              // when the current one was begun
}

// trace is the part of an attempt that is kept: the last eight bytes of the execution's id, which are random, combined with the
// attempt's number.
func trace(a flow.AttemptID) uint64 {
	return binary.BigEndian.Uint64(a.Execution[8:]) ^ uint64(a.Attempt)<<48
}

func (r *remembered) add(a flow.AttemptID, now time.Time, lease time.Duration) {
	if r.parts[0] == nil || now.Sub(r.since) >= lease/3 {
		copy(r.parts[1:], r.parts[:])
		r.parts[0], r.since = map[uint64]struct{}{}, now
	}
	r.parts[0][trace(a)] = struct{}{}
}

func (r *remembered) has(a flow.AttemptID) bool {
	for _, part := range r.parts {
		if _, is := part[trace(a)]; is {
			return true
		}
	}
	return false
}
