package loop

import (
	"fmt"
	"sync"

	"github.com/pawl-run/pawl/internal/engine/catalog"
)

// The loops of the engine that evaluate rules, waits, windows and schedules are shared by all users, who write the evaluated documents. So
// that no document delays another one's by more than a second, a loop takes turns:
//
//  1. It looks at all new rows, and gives each document definition.QuickWork. A document that needs more is costly from
//     then on, in this process, and its rows wait in the turn queue of the loop.
//  2. It takes one turn of that queue: the first one is evaluated within definition.SharedWork, or several parts of it within the budget
//     of a transaction, and goes to the end of the queue unless that was all of it. Then the loop goes back to 1.
//
// Turn queues are hints: the rows contain the work, and another process that takes over finds out anew what is costly.

// Costly remembers documents by name and version, or waits by execution, whose first look was not enough. If it is lost, each of them costs
// another first look.
type Costly struct {
	mu  sync.Mutex
	all map[string]bool
}

// Key is the name of a version of a document.
func Key(name string, version int) string { return fmt.Sprintf("%s@%d", name, version) }

// Has reports whether a document or wait is costly.
func (c *Costly) Has(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[key]
}

// Add remembers that a document or wait is costly.
func (c *Costly) Add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= catalog.Limit {
		c.all = map[string]bool{}
	}
	c.all[key] = true
}

// turnQueueMost is the length of a turn queue. The loop's next look finds elements beyond it again.
const turnQueueMost = 100_000

// TurnQueue is the elements that wait for a turn of one loop, each once, with the progress of its turns.
type TurnQueue[K comparable, T any] struct {
	mu    sync.Mutex
	order []K // dropped elements are skipped
	sofar map[K]T
}

// Has reports whether an element waits for its turn.
func (l *TurnQueue[K, T]) Has(k K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.sofar[k]
	return waits
}

// Len is how many elements wait for a turn.
func (l *TurnQueue[K, T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sofar)
}

// Add appends an element, or replaces its progress if it is there already.
func (l *TurnQueue[K, T]) Add(k K, sofar T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waits := l.sofar[k]; !waits {
		if len(l.sofar) >= turnQueueMost {
			return
		}
		l.order = append(l.order, k)
	}
	if l.sofar == nil {
		l.sofar = map[K]T{}
	}
	l.sofar[k] = sofar
}

// Take returns the next element. It stays in the queue, and has no other turn, until Turned or Drop is called.
func (l *TurnQueue[K, T]) Take() (k K, sofar T, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.order) > 0 {
		k, l.order = l.order[0], l.order[1:]
		if sofar, waits = l.sofar[k]; waits {
			return k, sofar, true
		}
	}
	return k, sofar, false
}

// Turned moves an element that had its turn behind all others.
func (l *TurnQueue[K, T]) Turned(k K, sofar T) {
	l.Drop(k)
	l.Add(k, sofar)
}

// Drop removes a finished element.
func (l *TurnQueue[K, T]) Drop(k K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sofar, k)
}

// Cursor is how far a loop has looked while elements wait in a turn queue: their rows stay the first ones of the store, and there may be
// more of them than one look reads. tail continues behind all rows that were seen, where new rows come; sweep passes through all rows
// again, for those that a transaction has committed late. Looks do not overlap.
type Cursor[P any] struct {
	mu          sync.Mutex
	tail, sweep P
}

// Look calls take with the place behind which it is to look. take returns the place of the last row that it has handled, and whether there
// was any row. waiting: an element waits for its turn.
func (c *Cursor[P]) Look(waiting bool, take func(after P) (last P, found bool, err error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var start P
	if !waiting {
		c.tail, c.sweep = start, start
	}
	last, found, err := take(c.tail)
	if err != nil {
		return err
	}
	if found {
		c.tail = last
		return nil
	}
	if !waiting {
		return nil
	}
	c.sweep, found, err = take(c.sweep)
	if !found {
		c.sweep = start
	}
	return err
}
