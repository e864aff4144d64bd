package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/store/storetest"
)

func open(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T) store.Store { return open(t, sqlite.InMemory) })
}

// SQLite also refuses impossible numbers. PostgreSQL leaves them to Check, because each word of a constraint costs every statement time.
func TestRefusedNumbers(t *testing.T) { storetest.RefusedNumbers(t, open(t, sqlite.InMemory)) }

func TestReopen(t *testing.T) {
	t.Parallel()
	storetest.Reopen(t, filepath.Join(t.TempDir(), "pawl.db"), open)
}

func TestCrash(t *testing.T) {
	storetest.Crash(t, filepath.Join(t.TempDir(), "pawl.db"), open)
}
