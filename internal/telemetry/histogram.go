package telemetry

import (
	"math"
	"sync/atomic"
)

// Histogram counts observations by size. It is for hot paths: an observation takes no lock and no memory. It is safe for
// concurrent use; use NewHistogram.
type Histogram struct {
	bounds []float64
	counts []atomic.Uint64 // one more than bounds: what is larger than all of them
	sum    atomic.Uint64   // bits of a float64
}

// NewHistogram counts by upper bounds, which grow.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts one value.
func (h *Histogram) Observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// Distribution is what a histogram has seen so far.
type Distribution struct {
	Count   uint64
	Sum     float64
	Buckets map[float64]uint64 // upper bound → how many were at most that
}

// Read returns what was observed. Observations made meanwhile may be in it in part.
func (h *Histogram) Read() Distribution {
	d := Distribution{Sum: math.Float64frombits(h.sum.Load()), Buckets: make(map[float64]uint64, len(h.bounds))}
	for i, b := range h.bounds {
		d.Count += h.counts[i].Load()
		d.Buckets[b] = d.Count
	}
	d.Count += h.counts[len(h.bounds)].Load()
	return d
}

// Seconds are bounds for durations between the fastest commit and what nobody should wait for.
func Seconds() []float64 {
	return []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
}

// Waits are bounds for durations that may be long: of a wait in a queue.
func Waits() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}
}

// Sizes are bounds for how many go together.
func Sizes() []float64 { return []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} }
