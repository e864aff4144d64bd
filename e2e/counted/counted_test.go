// Package counted counts what executions cost: commits, statements, round trips, bytes of the database's write-ahead log, and allocations
// of the process. Unlike times, counts are the same on a busy machine. testdata/counts.txt has each figure with its allowance.
// Notifications have a pace instead of a figure.
package counted

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/heap"
	"github.com/pawl-run/pawl/internal/store/postgres"
	sqlitestore "github.com/pawl-run/pawl/internal/store/sqlite"
)

var update = flag.Bool("update", false, "write the figures that were counted into testdata/counts.txt")

const table = "testdata/counts.txt"

// tries is how often each workload is counted. The lowest value of each figure counts: on a slow machine the engine's periodic looks at the
// store and garbage collections add to the cost of the executions, and nothing lowers it.
const tries = 3

func TestMain(m *testing.M) {
	flag.Parse()
	heap.Grow() // as the program does at its start
	os.Exit(m.Run())
}

func TestCounts(t *testing.T) {
	if raceEnabled {
		withoutRace(t)
		return
	}
	stated, err := readTable(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		name  string
		count func(*testing.T, workload) figures
	}{{"postgres", onPostgres}, {"sqlite", onSQLite}} {
		t.Run(s.name, func(t *testing.T) {
			for _, w := range workloads {
				t.Run(w.name, func(t *testing.T) {
					r := stated.row(s.name, w.name)
					got := s.count(t, w)
					for range tries - 1 {
						got = least(got, s.count(t, w))
					}
					t.Log(got)
					if *update {
						r.set(got)
						return
					}
					for _, off := range r.off(got) {
						t.Error(off)
					}
				})
			}
		})
	}
	if *update {
		if err := stated.write(table); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutRace runs the tests of this package again without the race detector, which allocates and drops what pools keep.
func withoutRace(t *testing.T) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("without the race detector: %v", err)
	}
}

// figures are the costs of one execution, by the names of the table's columns.
type figures map[string]float64

func least(a, b figures) figures {
	l := figures{}
	for column := range a {
		l[column] = min(a[column], b[column])
	}
	return l
}

// allocated counts allocations and bytes.
type allocated struct{ before runtime.MemStats }

func (a *allocated) begin() { runtime.ReadMemStats(&a.before) }

func (a *allocated) end(f figures, n float64) {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	f["allocations"] += float64(now.Mallocs-a.before.Mallocs) / n
	f["bytes"] += float64(now.TotalAlloc-a.before.TotalAlloc) / n
}

func onPostgres(t *testing.T, w workload) figures {
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED on PostgreSQL: PAWL_TEST_POSTGRES is not set (scripts/with-services sets it)")
	}
	f := figures{}
	t.Run("run", func(t *testing.T) { // it ends when the store is closed
		db := newDatabase(t, dsn)
		counts := &wire{to: db.url.Host}
		through := *db.url
		through.Host = counts.listen(t)
		s, err := postgres.Open(t.Context(), through.String(), postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		n := float64(w.count * max(w.rounds, 1))
		var a allocated
		var from string
		before := make(figures)
		read := func() figures {
			return figures{"commits": float64(counts.commits.Load()), "statements": float64(counts.statements.Load()),
				"trips": float64(counts.trips.Load())}
		}
		serve(t, s, committers, slots).run(w, func() {
			from = db.position()
			before = read()
			a.begin()
		}, func() {
			a.end(f, n)
			for column, v := range read() {
				f[column] += (v - before[column]) / n
			}
			f["wal"] += db.written(from) / n
		})
		if err := counts.paced(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func onSQLite(t *testing.T, w workload) figures {
	f := figures{}
	t.Run("run", func(t *testing.T) {
		counts := trace(t)
		s, err := sqlitestore.Open(t.Context(), sqlitestore.InMemory, sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		n := float64(w.count * max(w.rounds, 1))
		var a allocated
		before := make(figures)
		read := func() figures {
			return figures{"commits": float64(counts.commits.Load()), "statements": float64(counts.statements.Load()), "wal": float64(counts.pages.Load() * walFrame)}
		}
		serve(t, s, 1, slots).run(w, func() {
			before = read()
			a.begin()
		}, func() {
			a.end(f, n)
			for column, v := range read() {
				f[column] += (v - before[column]) / n
			}
		})
	})
	return f
}

// database is a database of the test's own on the server.
type database struct {
	testing.TB
	url *url.URL
	c   *pgx.Conn
}

func newDatabase(tb testing.TB, dsn string) *database {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	server := connect(tb, dsn)
	name := fmt.Sprintf("counted_%016x", rand.Uint64())
	exec := func(statement string) {
		if _, err := server.Exec(tb.Context(), statement); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}
	exec("CREATE DATABASE " + name)
	tb.Cleanup(func() {
		if _, err := server.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Error(err)
		}
	})
	u.Path = "/" + name
	d := &database{TB: tb, url: u, c: connect(tb, u.String())}
	if _, err := d.c.Exec(tb.Context(), "CREATE EXTENSION pg_walinspect"); err != nil {
		tb.Skipf("NOT TESTED: this PostgreSQL has no pg_walinspect for this user, which counts the bytes of the log: %v", err)
	}
	// The server keeps the log until this connection is closed, whatever checkpoints happen meanwhile.
	if _, err := d.c.Exec(tb.Context(), "SELECT pg_create_physical_replication_slot($1, true, true)", name); err != nil {
		tb.Fatal(err)
	}
	return d
}

func connect(tb testing.TB, dsn string) *pgx.Conn {
	tb.Helper()
	c, err := pgx.Connect(tb.Context(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// position returns the end of the log.
func (d *database) position() (lsn string) {
	if err := d.c.QueryRow(d.Context(), `SELECT pg_current_wal_flush_lsn()::text`).Scan(&lsn); err != nil {
		d.Fatal(err)
	}
	return lsn
}

// written returns how many bytes of the log after a position belong to this database. It leaves out full-page images, which follow
// checkpoints, and the records of commits, which name no database.
func (d *database) written(from string) (bytes float64) {
	err := d.c.QueryRow(d.Context(), `SELECT coalesce(sum(i.record_length - i.fpi_length), 0)::float8
		FROM pg_database d, pg_get_wal_records_info($1::pg_lsn, pg_current_wal_flush_lsn()) i
		WHERE d.datname = current_database() AND i.block_ref LIKE '%/' || d.oid || '/%'`, from).Scan(&bytes)
	if err != nil {
		d.Fatal(err)
	}
	return bytes
}
