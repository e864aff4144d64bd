package worker

import (
	"encoding/binary"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// remembered recognises attempts that the session has finished, declined or lost, for at least a lease: one hand-off may arrive twice, the
// second time much later. It keeps the attempts of the current third of a lease and of the three thirds before, eight bytes of each,
// because a worker that ends 46,000 attempts a second has 1.8 million of them.
type remembered struct {
	parts [4]traces // the current one first
	since time.Time // when the current one was begun
}

// trace is the part of an attempt that is kept: the last eight bytes of the execution's id, which are random, combined with the
// attempt's number. It is never 0.
func trace(a flow.AttemptID) uint64 {
	return max(binary.BigEndian.Uint64(a.Execution[8:])^uint64(a.Attempt)<<48, 1)
}

func (r *remembered) add(a flow.AttemptID, now time.Time, lease time.Duration) {
	if now.Sub(r.since) >= lease/3 {
		copy(r.parts[1:], r.parts[:])
		r.parts[0], r.since = traces{}, now
	}
	r.parts[0].add(trace(a))
}

func (r *remembered) has(a flow.AttemptID) bool {
	for i := range r.parts {
		if r.parts[i].has(trace(a)) {
			return true
		}
	}
	return false
}

// traces is a set of traces. They are random, so the lowest bits of a trace are its slot; if that is taken, it gets the next free slot.
// Every attempt is added once and looked for four times: a map computes a hash for each.
type traces struct {
	slots []uint64 // 0: free
	n     int      // slots that are taken
}

// at returns the slot of v, or the free slot for it.
func (t *traces) at(v uint64) *uint64 {
	last := uint64(len(t.slots) - 1)
	for i := v & last; ; i = (i + 1) & last {
		if s := &t.slots[i]; *s == v || *s == 0 {
			return s
		}
	}
}

func (t *traces) has(v uint64) bool { return t.n > 0 && *t.at(v) == v }

func (t *traces) add(v uint64) {
	if 4*t.n >= 3*len(t.slots) {
		old := t.slots
		t.slots = make([]uint64, max(2*len(old), 64))
		for _, v := range old {
			if v != 0 {
				*t.at(v) = v
			}
		}
	}
	if s := t.at(v); *s == 0 {
		*s = v
		t.n++
	}
}
