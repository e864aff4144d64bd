package store

import (
	"maps"
	"sync"
	"time"
)

// Unreadable stores the rows of live executions that a store could not decode: bytes that a disk has damaged, or rows that a later version
// of the program wrote. The first read of a queue or of due timers that meets such a row fails; later reads leave the row out, so that the
// executions after it continue. A repaired row is found again after unreadableFor; a row that is not met again, because it was deleted, is
// then forgotten. K is the type of a store's row ids.
type Unreadable[K comparable] struct {
	mu    sync.Mutex
	until map[K]time.Time
}

// unreadableFor is how long a row is left out before it is tried again. Each try fails one read.
const unreadableFor = 5 * time.Minute

// Add adds a row.
func (u *Unreadable[K]) Add(row K) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until = make(map[K]time.Time)
	}
	u.until[row] = time.Now().Add(unreadableFor)
}

// Has reports whether a row must be left out.
func (u *Unreadable[K]) Has(row K) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	until, ok := u.until[row]
	if ok && time.Now().After(until) {
		delete(u.until, row)
		return false
	}
	return ok
}

// Count returns how many rows are left out. A statement that reads the first n rows of an order has to read that many more.
func (u *Unreadable[K]) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(u.until, func(_ K, until time.Time) bool { return now.After(until) })
	return len(u.until)
}
