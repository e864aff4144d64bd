package crashloop

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// open opens a journal. If it is not closed, it is like that of a process that has died: nothing is in memory only.
func open(t *testing.T, path, version string) *Journal {
	t.Helper()
	j, err := Open(path, version, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func begin(t *testing.T, j *Journal, name string) (done func()) {
	t.Helper()
	done, err := j.Begin("rule", name, name)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// An evaluation during which the process died three times in a row is refused, and one that ended before is not.
func TestRefusesAfterDeaths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evaluating")
	for range Most {
		j := open(t, path, "1")
		begin(t, j, "good")()
		begin(t, j, "bad")
	}
	j := open(t, path, "1")
	_, err := j.Begin("rule", "bad", "bad")
	var refused *Refused
	if !errors.As(err, &refused) || refused.Times != Most ||
		!strings.Contains(err.Error(), "ended 3 times in a row while it evaluated rule bad") {
		t.Fatal(err)
	}
	if j.Refuses("rule", "bad") == nil || j.Refuses("rule", "good") != nil || j.Refuses("schedule", "bad") != nil {
		t.Error("Refuses and Begin differ")
	}
	begin(t, j, "good")()
	if _, err := open(t, path, "1").Begin("rule", "bad", "bad"); err == nil {
		t.Error("the next start has forgotten it")
	}
	begin(t, open(t, path, "2"), "bad")() // another version of Pawl may have been fixed
}

// Only deaths in a row count: an evaluation that ends, even with an error or a panic, has no count any more.
func TestAnEndForgetsDeaths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evaluating")
	for n := range 3 * Most {
		j := open(t, path, "1")
		done := begin(t, j, "unlucky")
		if n%Most == Most-1 {
			done()
		}
	}
	if n := open(t, path, "1").counts; len(n) != 0 {
		t.Errorf("%v", n)
	}
}

// Evaluations that ran in parallel with the cause are not charged for the second death: counted ones take turns.
func TestSuspectsTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evaluating")
	j := open(t, path, "1")
	begin(t, j, "guilty")
	begin(t, j, "beside")
	synctest.Test(t, func(t *testing.T) {
		j := open(t, path, "1")
		done := begin(t, j, "guilty")
		defer done()
		go func() { begin(t, j, "beside")() }()
		synctest.Wait()
		j2 := open(t, path, "1")
		if j2.counts["rule guilty"] != 2 || j2.counts["rule beside"] != 1 {
			t.Errorf("%v", j2.counts)
		}
	})
}

// More evaluations than slots run as well, and many at once leave nothing in the file.
func TestMoreThanSlots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evaluating")
	j := open(t, path, "1")
	var all sync.WaitGroup
	for n := range 4 * slots {
		all.Go(func() {
			for range 20 {
				begin(t, j, fmt.Sprint(n, strings.Repeat("x", n)))()
			}
		})
	}
	all.Wait()
	var held []func()
	for n := range slots + 1 {
		held = append(held, begin(t, j, fmt.Sprint(n)))
	}
	for _, done := range held {
		done()
	}
	if len(j.free) != slots {
		t.Errorf("%d slots are free", len(j.free))
	}
	if n := open(t, path, "1").counts; len(n) != 0 {
		t.Errorf("%v", n)
	}
}

// A truncated file, or one with other contents, counts as empty.
func TestDamagedFiles(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "short": "rule a\x00", "garbage": strings.Repeat("\xff", slots*slotSize+10),
		"no object": strings.Repeat("\x00", slots*slotSize) + `{"version":"1","counts":{"rule bad":3`,
	} {
		path := filepath.Join(t.TempDir(), "evaluating")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, path, "1")
		begin(t, j, "bad")()
		if len(j.counts) > 1+countedMost {
			t.Errorf("%s: %v", name, j.counts)
		}
	}
}

// Without a journal every evaluation runs.
func TestNoJournal(t *testing.T) {
	var j *Journal
	begin(t, j, "a")()
	if err := j.Refuses("rule", "a"); err != nil {
		t.Error(err)
	}
}

func BenchmarkBegin(b *testing.B) {
	j, err := Open(filepath.Join(b.TempDir(), "evaluating"), "1", slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	for b.Loop() {
		done, err := j.Begin("a step of workflow", "019aca7d-0000-7000-8000-000000000000", "etl")
		if err != nil {
			b.Fatal(err)
		}
		done()
	}
}
