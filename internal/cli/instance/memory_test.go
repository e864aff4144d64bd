package instance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/nobody"
)

// Each worker of a state directory has its own file, and finds the one that a dead worker of its server has left.
func TestMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	take := func(server string) *memory {
		t.Helper()
		m, err := OpenMemory(t.Context(), dir, server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	is := func(m *memory, want flow.ID) {
		t.Helper()
		if id, _ := m.Earlier(); id != want {
			t.Errorf("%s remembers %s, want %s", m.name(), id.Text(flow.SessionPrefix), want.Text(flow.SessionPrefix))
		}
	}
	keep := func(m *memory, session flow.ID, until time.Time) {
		t.Helper()
		if err := m.Keep(session, until); err != nil {
			t.Fatal(err)
		}
	}
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	a, b := take("one"), take("two")
	if a.name() == b.name() || !filepath.IsAbs(a.name()) {
		t.Errorf("%s and %s", a.name(), b.name())
	}
	is(a, flow.ID{})
	a.Secret = func(flow.ID) string { return "secret" }
	keep(a, flow.ID{1}, soon)
	keep(b, flow.ID{2}, soon)
	is(take("one"), flow.ID{}) // the living keep theirs
	_, _ = a.Close(), b.Close()

	again := take("two")
	is(again, flow.ID{2})
	third := take("two") // a file that another server's worker may come back for is not free
	if is(third, flow.ID{}); third.name() == a.name() {
		t.Error("it took another's file")
	}
	back := take("one")
	if is(back, flow.ID{1}); back.Was.Secret != "secret" || back.name() != a.name() {
		t.Errorf("%+v", back.Was)
	}
	if info, err := os.Stat(back.name()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others can read the secret", info, err)
	}
	if !mayReturn(back.name()) || mayReturn(third.name()) || mayReturn(filepath.Join(dir, "none")) || !mayReturn(dir) {
		t.Error("who may return is told wrongly")
	}
	keep(back, flow.ID{1}, past)
	if mayReturn(back.name()) {
		t.Error("its lease has run out")
	}
	_ = back.Close()
	if free := take("two"); free.name() != back.name() {
		t.Errorf("a file whose lease has run out is not used again: %s", free.name())
	}
	if err := again.Forget(); err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	is(take("two"), flow.ID{})
}

// A worker's name is unique, also across hosts that have the same directories and share a container engine: what is left under the name
// is removed.
func TestMemoryNames(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for range 2 {
		m, err := OpenMemory(t.Context(), t.TempDir(), "one")
		if err != nil {
			t.Fatal(err)
		}
		names[filepath.Base(m.name())] = true
		_ = m.Close()
	}
	if len(names) != 2 {
		t.Errorf("two workers in directories of the same path have the same name: %v", names)
	}
}

// Of several dead workers' files the one with a session to resume is taken, and not one that was left long ago.
func TestMemoryLatest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []*memory
	for i := range 5 {
		m, err := OpenMemory(t.Context(), dir, "one")
		if err == nil {
			err = m.Keep(flow.ID{byte(i + 1)}, time.Now().Add(time.Duration(i%3-1)*time.Hour-time.Duration(i)*time.Minute))
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	for _, m := range all {
		_ = m.Close()
	}
	for _, want := range []byte{3, 2, 5, 1, 4} {
		m, err := OpenMemory(t.Context(), dir, "one")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if id, _ := m.Earlier(); id != (flow.ID{want}) {
			t.Errorf("took %d, want %d", id[0], want)
		}
	}
}

// Workers in separate containers seem dead to each other, but live: the wait for them happens once, however many they are.
func TestMemoryOfForeigners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const others = 20
	for range others {
		m, err := OpenMemory(t.Context(), dir, "one")
		if err == nil {
			defer m.Close()
			err = m.Keep(flow.ID{1}, time.Now().Add(time.Hour))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	foreign := fmt.Appendf(nil, `{"pid":%d`, 1<<30) // no process has that id
	left, _ := filepath.Glob(filepath.Join(dir, "workers", "*"))
	for _, path := range left {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, bytes.Replace(b, fmt.Appendf(nil, `{"pid":%d`, os.Getpid()), foreign, 1), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	m, err := OpenMemory(t.Context(), dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if took := time.Since(began); len(left) != others || took > (others-1)*dyingFor {
		t.Errorf("%d others were waited for for %s", len(left), took)
	}
}

// A file that another user has left there stays that user's.
func TestMemoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	if nobody.Runs(t) {
		return
	}
	dir := t.TempDir()
	m, err := OpenMemory(t.Context(), dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	if err := os.Chmod(m.name(), 0); err != nil {
		t.Fatal(err)
	}
	next, err := OpenMemory(t.Context(), dir, "one")
	if err != nil || next.name() == m.name() {
		t.Fatalf("%s: %v", next.name(), err)
	}
	_ = next.Close()
}

// A shorter text overwrites all of the previous one, however long the server's name is.
func TestMemoryOfALongName(t *testing.T) {
	t.Parallel()
	m, err := OpenMemory(t.Context(), t.TempDir(), "https://pawl.example.com/"+strings.Repeat("a", 2*rememberedSize))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, until := range []time.Time{time.Unix(1, 123456789), time.Unix(1, 0)} { // the second one is written shorter
		if err := m.Keep(flow.ID{4}, until); err != nil {
			t.Fatal(err)
		}
		if was, err := readMemory(m.name()); err != nil || !was.Until.Equal(until) {
			t.Errorf("%v, %v", was.Until, err)
		}
	}
}

// A half-written file belongs to no worker, and does not prevent the start.
func TestMemorySpoiled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := OpenMemory(t.Context(), dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	if err := os.WriteFile(m.name(), []byte(`{"pid": 7, "sess`), 0o600); err != nil {
		t.Fatal(err)
	}
	if !mayReturn(m.name()) {
		t.Error("nobody can tell, and it was told that nobody returns")
	}
	if m, err = OpenMemory(t.Context(), dir, "one"); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if id, _ := m.Earlier(); !id.IsZero() {
		t.Errorf("remembers %s", id)
	}
	if err := m.Keep(flow.ID{3}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if was, err := readMemory(m.name()); err != nil || was.Session != (flow.ID{3}).Text(flow.SessionPrefix) {
		t.Errorf("%+v, %v", was, err)
	}
}
