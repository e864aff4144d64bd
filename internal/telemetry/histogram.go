package telemetry

import (
	"math"
	"sync/atomic"
)

// Histogram counts observations by size. It is for hot paths: an observation takes no lock and allocates nothing. It is
// safe for concurrent use; use NewHistogram.
type Histogram struct {
	bounds []float64
	counts []atomic.Uint64 // one more than bounds, for observations above all of them
	sum    atomic.Uint64   // bits of a float64
}

// NewHistogram returns a histogram with ascending upper bounds.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

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

// Distribution is the present content of a histogram.
type Distribution struct {
	Count   uint64
	Sum     float64
	Buckets map[float64]uint64 // by upper bound: number of observations up to it
}

// Read returns the observations so far. Observations made meanwhile may be included in part.
func (h *Histogram) Read() Distribution {
	d := Distribution{Sum: math.Float64frombits(h.sum.Load()), Buckets: make(map[float64]uint64, len(h.bounds))}
	for i, b := range h.bounds {
		d.Count += h.counts[i].Load()
		d.Buckets[b] = d.Count
	}
	d.Count += h.counts[len(h.bounds)].Load()
	return d
}

// Seconds are bounds for durations, from the fastest commits to unacceptable waits.
func Seconds() []float64 {
	return []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
}

// Waits are bounds for durations that may be long, such as waits in a queue.
func Waits() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}
}

// Sizes are bounds for the sizes of batches.
func Sizes() []float64 { return []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} }
