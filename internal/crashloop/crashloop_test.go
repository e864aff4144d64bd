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

// open opens a journal. One that is not closed is what a process leaves that has died: nothing of it is in memory only.
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

// What was being evaluated when the process died three times in a row is refused, and what had ended before is not.
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
	begin(t, open(t, path, "2"), "bad")() // another version of Pawl may have been mended
}

// Only deaths in a row count: what was evaluated to its end, with an error or a panic too, begins anew.
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

// What was evaluated side by side with the cause is not charged for the second death: what has a count waits for its turn.
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

// More evaluations than slots go on as well, and many at a time leave nothing.
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

// A file that was cut off, or is of something else, is an empty one.
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

// Without a journal everything is evaluated.
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
