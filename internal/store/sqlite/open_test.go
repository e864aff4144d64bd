package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/nobody"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/storetest"
)

func mustOpen(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, Options{})
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

// alter runs SQL on a database, bypassing the store.
func alter(t *testing.T, path, script string) {
	t.Helper()
	c, err := openWriter(path, "FULL")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.exec(script), c.close()); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

// TestOpenRefuses checks that every file that cannot be a store is refused, with its name, the reason and the fix.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	made := func(t *testing.T, script string) string {
		path := filepath.Join(t.TempDir(), "pawl.db")
		s, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if script != "" {
			alter(t, path, script)
		}
		return path
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T) string
		want []string
	}{
		{"not a database", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "notes.txt")
			if err := os.WriteFile(path, []byte(strings.Repeat("these are notes\n", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, []string{"is not a database", "name another file"}},
		{"another program's", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "theirs.db")
			alter(t, path, "CREATE TABLE theirs (a)")
			return path
		}, []string{"another program's database", "name another file"}},
		{"newer", func(t *testing.T) string {
			return made(t, "INSERT INTO schema_migrations VALUES (99, '0099_later', 'x', 0)")
		}, []string{"version 99", "use a newer pawl"}},
		{"made otherwise", func(t *testing.T) string {
			return made(t, "UPDATE schema_migrations SET sum = 'x'")
		}, []string{"0001_base", "is not the one", "Use that program, or name an empty database"}},
		{"from before the first release, in 30 steps", func(t *testing.T) string {
			return made(t, "UPDATE schema_migrations SET sum = 'x'; INSERT INTO schema_migrations VALUES (2, '0002_inputs', 'y', 0), (30, '0030_archives', 'z', 0)")
		}, []string{"a pawl from before the first release made it", "Nothing was changed"}},
		{"no directory", func(t *testing.T) string {
			return filepath.Join(t.TempDir(), "missing", "pawl.db")
		}, []string{"missing", "no such file or directory"}},
		{"a directory", func(t *testing.T) string { return t.TempDir() }, []string{"cannot be opened"}},
		{"read-only", func(t *testing.T) string {
			path := made(t, "")
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
			return path
		}, []string{"cannot be written", "write permission"}},
		{"damaged", func(t *testing.T) string {
			path := made(t, "")
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt([]byte(strings.Repeat("\xee", 5000)), 100)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			return path
		}, []string{"is damaged", "restore a copy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "read-only" && nobody.Runs(t) { // root can write everywhere
				return
			}
			path := c.make(t)
			s, err := Open(context.Background(), path, Options{})
			if err == nil {
				t.Fatal("it was opened", s.Close())
			}
			for _, say := range append(c.want, path) {
				if !strings.Contains(err.Error(), say) {
					t.Errorf("the error says %q, want %q in it", err, say)
				}
			}
		})
	}
}

// A store that was closed can be opened again even while another goroutine starts a process: until that executes its program, it has a copy
// of the lock's descriptor.
func TestOpensAfterACloseBesideAStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(s.lock.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// later is the schema of the main database with a second migration, which changes a row and adds a column.
func later(t *testing.T) (schema, fstest.MapFS) {
	t.Helper()
	base, err := schemas.ReadFile("schema/main_0001_base.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"schema/main_0001_base.sql": {Data: base}, "schema/main_0002_colours.sql": {Data: []byte(
		`ALTER TABLE queues ADD COLUMN colour TEXT NOT NULL DEFAULT 'none'; UPDATE queues SET colour = 'green' WHERE name = 'kept'`)}}
	return schema{mainSchema.name, mainSchema.application, files}, files
}

// prepared returns the result of preparing a file with a schema.
func prepared(t *testing.T, m schema, path string, asIs bool) error {
	t.Helper()
	c, err := openWriter(path, "FULL")
	if err != nil {
		t.Fatal(err)
	}
	return errors.Join(m.prepare(c, time.Now, asIs), c.close())
}

// A file of the first version is migrated with its content; with AsIs it is refused.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	asIs := func(want string) {
		t.Helper()
		s, err := Open(t.Context(), path, Options{AsIs: true})
		if err == nil {
			err = s.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("as it is: %v, want %q", err, want)
		}
	}
	asIs("no such file")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := flow.Submit(flow.ID{1}, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", CreatedAt: time.UnixMicro(1e15).UTC()})
	err = s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	asIs("")
	alter(t, path, `INSERT INTO queues (name, created_at) VALUES ('kept', 0), ('other', 0)`)
	m, _ := later(t)
	if err := prepared(t, m, path, true); err == nil || !strings.Contains(err.Error(), "its schema is at version 1 and this program wants 2: start pawl server") {
		t.Errorf("as it is: %v", err)
	}
	for range 2 {
		if err := prepared(t, m, path, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := prepared(t, m, path, true); err != nil {
		t.Errorf("as it is, up to date: %v", err)
	}
	asIs("version 2 and this program knows versions up to 1: use a newer pawl")
	alter(t, path, `CREATE TABLE found (wrong INTEGER CHECK (wrong = 0));
		INSERT INTO found SELECT count(*) - 1 FROM queues WHERE name = 'kept' AND colour = 'green';
		INSERT INTO found SELECT count(*) - 1 FROM queues WHERE name = 'other' AND colour = 'none';
		DROP TABLE found; DELETE FROM schema_migrations WHERE version = 2`)
	if _, err := mustOpen(t, path).Get(t.Context(), d.ID); err != nil {
		t.Errorf("what was there before: %v", err)
	}
}

// A migration that fails changes nothing, and neither do those before it.
func TestFailingUpgrade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	if err := prepared(t, mainSchema, path, false); err != nil {
		t.Fatal(err)
	}
	m, files := later(t)
	files["schema/main_0003_wrong.sql"] = &fstest.MapFile{Data: []byte(`ALTER TABLE nowhere ADD COLUMN colour TEXT`)}
	if err := prepared(t, m, path, false); err == nil || !strings.Contains(err.Error(), "migration 0003_wrong: ") {
		t.Errorf("the third one: %v", err)
	}
	mustOpen(t, path)
}

func TestOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	first := mustOpen(t, path)
	_, err := Open(context.Background(), path, Options{})
	if err == nil || !errors.Is(err, errServed) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", os.Getpid())) {
		t.Errorf("opened twice: %v, want the process that holds it", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path)
}

// TestDiskFull fills the disk for a while: refused transactions leave nothing, committed ones stay, and the store need not be reopened.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	x := newBench(t)
	x.submit(10)
	pages, err := x.s.w.queryInt("PRAGMA page_count")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.s.w.exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+1)); err != nil {
		t.Fatal(err)
	}
	big := flow.Submit(x.id(), flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", Input: make([]byte, 1<<20), CreatedAt: x.now})
	write := func() error {
		return x.s.Update(context.Background(), func(ctx context.Context, tx store.Tx) error {
			return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{big}})
		})
	}
	if err := write(); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "full: free some space on the disk of /") || !strings.Contains(err.Error(), "bench.db") {
		t.Errorf("a write to a full disk: %v, want ErrUnavailable that says so, and where", err)
	}
	if _, err := x.s.Get(context.Background(), big.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was refused: %v, want ErrNotFound", err)
	}
	if err := x.s.w.exec("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Errorf("after space was made: %v", err)
	}
	if n := len(x.claim(100)); n != 10 {
		t.Errorf("%d executions wait, want the 10 from before", n)
	}
	noViolations(t, x.s)
}

func noViolations(t *testing.T, s *Store) {
	t.Helper()
	found, err := s.Check(context.Background())
	if err != nil || len(found) > 0 {
		t.Errorf("check: %v, %v", found, err)
	}
}

// TestLogStaysShort writes far more than the log may contain and checks its size.
func TestLogStaysShort(t *testing.T) {
	t.Parallel()
	x := newBench(t)
	payload := make([]byte, 1<<20)
	for range 150 {
		d := flow.Submit(x.id(), flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", Input: payload, CreatedAt: x.now})
		x.update(func(ctx context.Context, tx store.Tx) error {
			return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
		})
	}
	fi, err := os.Stat(x.s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(64 << 20); fi.Size() > limit {
		t.Errorf("after writing 150 MB the log has %d bytes, want at most %d", fi.Size(), limit)
	}
}

// TestLogBeginsAgainAmongSmallCommits lets a checkpoint leave a few pages of a long log, as when the writer commits during it. The writer
// is then blocked until these are moved as well, and its next commit begins the log again.
func TestLogBeginsAgainAmongSmallCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t)
		commit := func(size int) {
			t.Helper()
			r := flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", Input: make([]byte, size), CreatedAt: x.now}
			d := flow.Submit(x.id(), r)
			if err := x.s.write(func() error { return x.s.tx.Apply(t.Context(), store.Delta{Drafts: []*flow.Draft{d}}) }); err != nil {
				t.Fatal(err)
			}
		}
		<-x.s.writeToken
		commit((walSoft - walFew) * 4096)
		reader := <-x.s.readers
		if err := reader.exec("BEGIN; SELECT n FROM executions LIMIT 1"); err != nil {
			t.Fatal(err)
		}
		for x.s.w.logLength() < walSoft {
			commit(10 * 4096)
		}
		synctest.Wait() // the checkpoint has moved what the reader has seen
		if err := reader.exec("COMMIT"); err != nil {
			t.Fatal(err)
		}
		x.s.readers <- reader
		x.s.writeToken <- struct{}{}
		synctest.Wait()
		<-x.s.writeToken
		commit(0)
		x.s.writeToken <- struct{}{}
		if n := x.s.w.logLength(); n >= walFew {
			t.Errorf("the log has %d pages after a commit that followed the checkpoint, want it begun again", n)
		}
	})
}

// TestCheckFindsDamage plants rows that no decision can write.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		invariant int
		script    string
	}{
		{16, "DELETE FROM live WHERE n = (SELECT min(n) FROM live)"},
		{16, "INSERT INTO ended SELECT n, 6, 0, x'0103', NULL, NULL, NULL FROM live LIMIT 1"},
		{16, "UPDATE live SET ticket = 5 WHERE place = 3"},
		{17, "INSERT INTO children SELECT workflow, attempt, task, idx + 1, n, ended FROM children"},
		{17, "UPDATE children SET n = 999"},
		{17, "DELETE FROM children"},
		{25, "INSERT INTO idempotency VALUES ('k', 999, x'00')"},
		{33, "UPDATE ids SET n = 999 WHERE n = 1"},
		{33, "DELETE FROM ids WHERE n = 1"},
		{33, "UPDATE live SET queue = 'elsewhere' WHERE n = (SELECT min(n) FROM live)"},
		{33, "UPDATE live SET wake = 1 WHERE n = (SELECT min(n) FROM live)"},
		{33, "UPDATE children SET ended = 6"},
		{33, "INSERT INTO events VALUES (999 << 22 | 1, 1, 1, 0, NULL)"},
		{33, "INSERT INTO labels (name, value, n) VALUES ('a', 'b', 999)"},
		{33, "INSERT INTO inbox VALUES (999, 1, x'00')"},
		{33, "INSERT INTO live (" + live.names("") + ") SELECT 999, " + strings.Replace(live[1:].names(""), "ticket", "999", 1) + " FROM live LIMIT 1"},
		{6, "DELETE FROM events WHERE k = (SELECT min(k) FROM events)"},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			x := newBench(t)
			x.submit(13)
			x.finish(x.claim(10))
			wf := flow.Submit(x.id(), flow.Request{Action: "wf", Kind: flow.KindWorkflow, Queue: "default", CreatedAt: x.now})
			if err := wf.Schedule(0, x.now); err != nil {
				t.Fatal(err)
			}
			child := flow.Submit(x.id(), flow.Request{Parent: wf.ID, ParentAttempt: 1, Task: "t", Action: "noop", Kind: flow.KindNoop, Queue: "default", CreatedAt: x.now})
			x.update(func(ctx context.Context, tx store.Tx) error {
				return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{wf, child}})
			})
			noViolations(t, x.s)
			alter(t, x.s.path, c.script)
			found, err := x.s.Check(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range found {
				if v.Invariant == c.invariant {
					return
				}
			}
			t.Errorf("Check found %v, want invariant %d", found, c.invariant)
		})
	}
}

// TestLogIsEmptied checks that the log of an idle store takes no space, and is not checked again until something is written.
func TestLogIsEmptied(t *testing.T) {
	t.Parallel()
	x := newBench(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for range 3 {
		x.run(batch)
		for {
			fi, err := os.Stat(x.s.path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			if fi.Size() == 0 && x.s.wal.resting.Load() {
				break
			}
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("the log has %d bytes, and is looked at no more: %t", fi.Size(), x.s.wal.resting.Load())
			}
		}
	}
	x.run(batch)
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	x := newBench(t)
	storetest.Unreadable(t, x.s, func(ids ...flow.ID) {
		for _, id := range ids {
			alter(t, x.s.path, fmt.Sprintf("UPDATE live SET state = x'ff' WHERE n = (SELECT n FROM executions WHERE id = x'%x')", id[:]))
		}
	})
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	x := newBench(t)
	storetest.Damaged(t, x.s, func(table, column string, ids ...flow.ID) {
		for _, id := range ids {
			alter(t, x.s.path, fmt.Sprintf(`UPDATE %s SET detail = '{"rules": 1, "timeout": "x"}' WHERE %s = x'%x'`, table, column, id[:]))
		}
	})
}

// Inputs and outputs are in the files, so only the user that runs Pawl may read them, regardless of the umask and the directory.
func TestFilesAreOfOneUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := s.w.logLength()
	if err := s.Probe(t.Context()); err != nil || s.w.logLength() <= before {
		t.Errorf("probe: %v; the log has %d pages, and had %d", err, s.w.logLength(), before)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(f), mode)
		}
	}
}
