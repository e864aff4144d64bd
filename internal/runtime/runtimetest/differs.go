//go:build unix

package runtimetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Differs lists the subtests in which a backend differs from the suite's expectation, with the reason. A key is a
// subtest's name below Exercise ("Behaviour/mounts", "Behaviour/refusals/absent source"), the number of a hostile row
// ("12"), or a row and one line that its probe may print ("23/opened /sys"). Listed subtests still run: their failure
// is printed with the reason, and an entry that is not needed fails the test, so that the list stays true.
type Differs map[string]string

// expectations is a list of differences and the set of those that occurred.
type expectations struct {
	differs Differs
	mu      sync.Mutex
	met     map[string]bool
}

func expect(d Differs) *expectations {
	return &expectations{differs: d, met: make(map[string]bool)}
}

// allows returns the reason why key may differ, and records that it did.
func (e *expectations) allows(key string) (why string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if why, ok = e.differs[key]; ok {
		e.met[key] = true
	}
	return why, ok
}

// check runs f as a test of t; if key is listed, its failures are only printed.
func (e *expectations) check(t testing.TB, key string, f func(testing.TB)) {
	t.Helper()
	why, listed := e.allows(key)
	if !listed {
		f(t)
		return
	}
	trial := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // FailNow and Skip end the goroutine that calls them
		defer close(done)
		f(trial)
	}()
	<-done
	if trial.skipped {
		t.Skip(strings.Join(trial.said, "; "))
	}
	if !trial.Failed() {
		t.Errorf("%s is listed as different (%s) and passes: take it off the list", key, why)
		return
	}
	t.Logf("%s differs: %s. Seen: %s", key, why, strings.Join(trial.said, "; "))
}

// finish reports entries below prefix that no subtest used.
func (e *expectations) finish(t testing.TB, prefix string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(e.differs)) {
		if strings.HasPrefix(key, prefix) && !e.met[key] {
			t.Errorf("%s is listed as different (%s) and was not seen: take it off the list", key, e.differs[key])
		}
	}
}

// recorder is a test that records its failures instead of reporting them.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	failed  bool
	skipped bool
	said    []string
}

func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	if text != "" {
		r.said = append(r.said, strings.TrimSpace(text))
	}
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Error(args ...any)                 { r.note(true, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(true, fmt.Sprintf(format, args...)) }
func (r *recorder) Fail()                             { r.note(true, "") }
func (r *recorder) FailNow()                          { r.Fail(); stop() }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); stop() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); stop() }
func (r *recorder) SkipNow()                          { r.skipped = true; stop() }
func (r *recorder) Skip(args ...any)                  { r.note(false, fmt.Sprintln(args...)); r.SkipNow() }
func (r *recorder) Skipf(format string, args ...any) {
	r.note(false, fmt.Sprintf(format, args...))
	r.SkipNow()
}
