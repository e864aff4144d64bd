// Package heap makes a process with a small heap collect garbage less often than Go does by default. A server or worker of
// Pawl keeps 10 or 20 MB alive whatever it does, and allocates that much in a fraction of a second: collecting it each time
// took a quarter of its processor time.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// room is the garbage that a heap smaller than this may contain: a little memory for much less work.
	room = 48 << 20
	// most is Go's percentage for the smallest heaps, so that an idle process stays small.
	most = 400
	// least is Go's default. A heap larger than room is collected as usual.
	least = 100
)

// Grow sets the garbage collection percentage, now and after each collection. It does nothing if the operator has set
// GOGC. It cannot be undone: call it once, at the start of the process.
func Grow() {
	if os.Getenv("GOGC") != "" {
		return
	}
	adjust(least)
}

// adjust sets the percentage and does so again after the next collection.
func adjust(now int) {
	next := percent(live())
	if next != now {
		debug.SetGCPercent(next)
	}
	// The object is garbage at once, so the next collection finds it.
	runtime.AddCleanup(new([16]byte), func(int) { adjust(next) }, 0)
}

// percent is the percentage for a heap with so many live bytes.
func percent(alive uint64) int {
	return int(min(max(room*100/max(alive, 1), least), most))
}

// live is the number of bytes that the last collection found alive; 0 before the first.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
