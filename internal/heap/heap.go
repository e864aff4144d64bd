// Package heap lets a process that holds little collect its garbage more rarely than Go does by default. A server or worker
// of Pawl keeps ten or twenty megabytes alive whatever it does, and makes that much garbage in a fraction of a second:
// collecting it each time took a quarter of its processor time.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// room is how much garbage a heap may hold that is smaller than this: a little memory for much less work.
	room = 48 << 20
	// most is Go's percentage for the smallest heaps, so that an idle process stays small.
	most = 400
	// least is Go's default. A heap of more than room is collected as ever.
	least = 100
)

// Grow sets the percentage at which garbage is collected, now and after each collection. It does nothing when GOGC says
// what the operator wants. There is no way back: call it once, where the process begins.
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

// percent is how much a heap may grow beyond what is alive in it, in bytes.
func percent(alive uint64) int {
	return int(min(max(room*100/max(alive, 1), least), most))
}

// live is how many bytes the last collection found alive; 0 before the first.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
