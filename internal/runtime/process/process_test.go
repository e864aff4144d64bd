//go:build unix

package process

import (
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

func TestConformance(t *testing.T) {
	runtimetest.Exercise(t, func(t testing.TB) runtime.Runtime {
		r, err := New(Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return r
	})
}
