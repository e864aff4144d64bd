//go:build unix

// Package runtimetest is the conformance suite of the runtime port. Every backend passes it unchanged; the hostile
// programs run only on backends that contain them.
package runtimetest

import (
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Factory makes a fresh runtime; the suite closes it.
type Factory func(t testing.TB) runtime.Runtime

// Exercise runs the whole suite.
func Exercise(t *testing.T, factory Factory) {
	t.Run("Behaviour", func(t *testing.T) { behave(t, factory) })
	t.Run("Hostile", func(t *testing.T) {
		r := open(t, factory)
		if r.Isolation() < runtime.Contained {
			t.Skipf("runtime %s contains nothing: the hostile programs would harm this host", r.Name())
		}
		attack(t, r)
	})
	t.Run("Race", func(t *testing.T) { race(t, factory) })
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
