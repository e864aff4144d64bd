// Package spawn creates processes from one thread that does nothing else. On Linux a child that asked to die with its
// parent dies with the thread that created it, and Go ends threads as it pleases: whenever a goroutine that had locked
// one returns. Backends that arm PR_SET_PDEATHSIG create their children here.
package spawn

import "runtime"

// Thread runs functions one after another on its own thread. It is safe for concurrent use.
type Thread struct{ jobs chan func() }

// NewThread starts the thread; it lives until Close.
func NewThread() *Thread {
	t := &Thread{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		ownPriority()
		for job := range t.jobs {
			job()
		}
	}()
	return t
}

// Do runs f on the thread and returns when f has. It must not be called after Close.
func (t *Thread) Do(f func()) {
	done := make(chan struct{})
	t.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Close ends the thread, and with it every living child with PR_SET_PDEATHSIG.
func (t *Thread) Close() { close(t.jobs) }
