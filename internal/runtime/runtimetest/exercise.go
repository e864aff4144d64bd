//go:build unix

// Package runtimetest is the conformance suite of the runtime port. Every backend passes it unchanged; a backend lists
// its differences with the reason ([Differs]). The hostile programs run only on backends that contain them.
package runtimetest

import (
	"os"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Factory opens a new runtime; the suite closes it.
type Factory func(t testing.TB) runtime.Runtime

// Option adapts the suite to a backend.
type Option func(*suite)

// Differing lists the backend's differences.
func Differing(d Differs) Option { return func(s *suite) { s.expectations = expect(d) } }

// Races is the number of rounds of row 47, in which a kill, an exit and a timeout coincide; the default is 1,000.
func Races(n int) Option { return func(s *suite) { s.races = n } }

// Brief reduces repetition: 100 races, one storm. It is for a backend's second configuration.
func Brief() Option { return func(s *suite) { s.races, s.brief = 100, true } }

// HostileOnly runs only the hostile programs. It is for another way to start programs.
func HostileOnly() Option { return func(s *suite) { s.hostileOnly = true } }

// Left adds a function that lists what the backend left on the host after a run, such as containers; the suite
// itself looks for processes, mounts and Pawl's cgroups.
func Left(find func(testing.TB) []string) Option { return func(s *suite) { s.left = find } }

// suite is one run of the suite against one backend.
type suite struct {
	*expectations
	open  Factory
	races int
	brief bool

	hostileOnly bool
	left        func(testing.TB) []string
}

// alone is held by each run of the suite, because its counts (descriptors, cgroups) are of the whole process.
var alone sync.Mutex

// Exercise runs the whole suite. Tests that call it may be parallel; within one process they run one after another.
func Exercise(t *testing.T, factory Factory, options ...Option) {
	alone.Lock()
	defer alone.Unlock()
	s := &suite{
		expectations: expect(nil), open: factory, races: 1000, left: func(testing.TB) []string { return nil },
	}
	for _, o := range options {
		o(s)
	}
	if !s.hostileOnly {
		t.Run("Behaviour", func(t *testing.T) {
			behave(t, s)
			s.finish(t, "Behaviour/")
		})
	}
	t.Run("Hostile", func(t *testing.T) {
		t.Cleanup(func() { // after the runtime's own
			if left := Cgroups(os.Getpid()); len(left) > 0 {
				t.Errorf("the closed runtime has left the cgroups %v", left)
			}
		})
		r := open(t, factory)
		if r.Isolation() < runtime.Contained {
			t.Skipf("runtime %s contains nothing: the hostile programs would harm this host", r.Name())
		}
		attack(t, s, r)
	})
	if s.hostileOnly {
		return
	}
	s.run(t, "47", "47 kill, exit and timeout raced", func(t testing.TB) { race(t, open(t, factory), s.races) })
}

// run runs f as a subtest, whose failure may be listed under key and name.
func (s *suite) run(t *testing.T, key, name string, f func(testing.TB)) {
	t.Run(name, func(t *testing.T) { s.check(t, key, f) })
}

// open makes a runtime that is closed at the end of the test.
func open(t testing.TB, factory Factory) runtime.Runtime {
	t.Helper()
	r := factory(t)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func stop() { goruntime.Goexit() }
