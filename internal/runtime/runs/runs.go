// Package runs holds a runtime's runs in progress, and ends them when the runtime closes.
package runs

import (
	"errors"
	"sync"
)

// ErrClosed is returned by a start after Close.
var ErrClosed = errors.New("runtime is closed")

// Set holds the runs in progress. The zero value is empty. It is safe for concurrent use.
type Set[R interface {
	comparable
	Kill(reason string)
}] struct {
	mu     sync.Mutex
	runs   map[R]struct{}
	closed bool
	idle   sync.WaitGroup
}

// Add adds a run, or fails with ErrClosed. Wait waits until Remove is called for the run.
func (s *Set[R]) Add(run R) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.runs == nil {
		s.runs = map[R]struct{}{}
	}
	s.runs[run] = struct{}{}
	s.idle.Add(1)
	return nil
}

// Remove removes a run that has ended completely.
func (s *Set[R]) Remove(run R) {
	s.mu.Lock()
	delete(s.runs, run)
	s.mu.Unlock()
	s.idle.Done()
}

// Hold keeps Wait from returning until release is called, as a run does. It fails with ErrClosed.
func (s *Set[R]) Hold() (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.idle.Add(1)
	return s.idle.Done, nil
}

// Close kills every run and prevents new ones. It reports whether this is the first call.
func (s *Set[R]) Close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	for run := range s.runs {
		run.Kill("the runtime is closing")
	}
	return true
}

func (s *Set[R]) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Set[R]) Wait() { s.idle.Wait() }
