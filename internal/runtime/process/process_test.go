//go:build unix

package process

import (
	"os"
	"path/filepath"
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

// TestSweep checks that a sweep removes the directories of a dead runtime, and not those of a living one.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	live, err := makeBase(parent)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := makeBase(parent)
	if err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(dead.dir, "run-1", "locked")
	if err := os.MkdirAll(locked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the kernel does at a process's death
	next, err := makeBase(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.dir); err == nil {
		t.Error("the dead owner's directory was left")
	}
	for _, b := range []*base{live, next} {
		if _, err := os.Stat(b.dir); err != nil {
			t.Errorf("a live owner's directory was taken: %v", err)
		}
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
