// Package drain copies a program's output from its pipes to their writers under one limit on their sum. Backends
// share it; it knows nothing of processes.
package drain

import (
	"io"
	"sync"
	"sync/atomic"
)

// Budget is the number of bytes that stdout and stderr may write together. It is safe for concurrent use.
type Budget struct {
	left     atomic.Int64
	exceeded func()
	once     sync.Once
}

// NewBudget allows limit bytes; exceeded is called once, by the goroutine that reads the first byte beyond.
func NewBudget(limit int64, exceeded func()) *Budget {
	b := &Budget{exceeded: exceeded}
	b.left.Store(limit)
	return b
}

// take asks for n bytes and returns how many of them are within the budget.
func (b *Budget) take(n int64) int64 {
	left := b.left.Add(-n)
	if left >= 0 {
		return n
	}
	b.once.Do(b.exceeded)
	return max(0, n+left)
}

func (b *Budget) Exceeded() bool { return b.left.Load() < 0 }

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Pump copies from r to w until r ends and returns how many bytes were within the budget. It always reads to the end,
// so that a full pipe never blocks a program: bytes beyond the budget, and all bytes after an error of w, are read
// and dropped. A nil w drops everything and counts it. If w has a method End, it is called when r has ended.
func Pump(r io.Reader, w io.Writer, b *Budget) int64 {
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	if e, ok := w.(interface{ End() }); ok {
		defer e.End()
	}
	var kept int64
	for {
		n, err := r.Read(buffer[:])
		if n > 0 {
			within := b.take(int64(n))
			kept += within
			if w != nil && within > 0 {
				if _, werr := w.Write(buffer[:within]); werr != nil {
					w = nil
				}
			}
		}
		if err != nil {
			return kept
		}
	}
}
