package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/blobtest"
	"github.com/pawl-run/pawl/internal/blob/postgres"
	executions "github.com/pawl-run/pawl/internal/store/postgres"
)

// piece is the size of a blob's row.
const piece = 256 << 10

// shelf is a store in its own schema, with a separate connection.
type shelf struct {
	*postgres.Store
	schema string
	beside *pgx.Conn
}

func open(t testing.TB, options string) *shelf {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED: PAWL_TEST_POSTGRES names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.")
	}
	ctx := context.Background()
	s := &shelf{schema: fmt.Sprintf("test_%016x", rand.Uint64())}
	o := executions.Options{Schema: s.schema}
	if err := executions.Migrate(ctx, dsn, o); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.beside, err = pgx.Connect(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	through := dsn
	if pooler := os.Getenv("PAWL_TEST_PGBOUNCER"); options == "pooled" && pooler != "" {
		through = pooler
	} else if options == "pooled" {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("default_query_exec_mode", "exec")
		u.RawQuery = q.Encode()
		through = u.String()
	}
	pool, schema, err := executions.Pool(ctx, through, o, 3)
	if err != nil {
		t.Fatal(err)
	}
	s.Store = postgres.New(pool, schema)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.beside.Exec(ctx, `DROP SCHEMA `+s.schema+` CASCADE`); err != nil {
			t.Error(err)
		}
		_ = s.beside.Close(ctx)
	})
	return s
}

// run runs a statement, bypassing the store.
func (s *shelf) run(t *testing.T, sql string) {
	t.Helper()
	if _, err := s.beside.Exec(t.Context(), strings.ReplaceAll(sql, "{s}", s.schema)); err != nil {
		t.Fatal(err)
	}
}

// count counts the rows of a table.
func (s *shelf) count(t *testing.T, table string) (n int) {
	t.Helper()
	if err := s.beside.QueryRow(t.Context(), `SELECT count(*) FROM `+s.schema+`.`+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// late makes enough time pass for all loose contents to be removed.
func (s *shelf) late(t *testing.T) {
	s.run(t, `UPDATE {s}.blob_loose SET until = until - interval '1 hour'`)
}

func (s *shelf) put(t *testing.T, name, content string) {
	t.Helper()
	if n, err := s.Put(t.Context(), name, strings.NewReader(content)); err != nil || n != int64(len(content)) {
		t.Fatalf("put %s: %d, %v", name, n, err)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(t *testing.T) blob.Store { return open(t, "").Store })
}

func TestConformanceThroughAPooler(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(t *testing.T) blob.Store { return open(t, "pooled").Store })
}

// Nothing is left of removed, replaced and failed blobs once no reader or writer can need them.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	large := strings.Repeat("0123456789abcdef", 3*piece/16+7)
	s.put(t, "a/large", large)
	s.put(t, "a/large", large[1:])
	s.put(t, "a/small", "one")
	s.put(t, "a/small", "two")
	broken := errors.New("the pipe broke")
	if _, err := s.Put(t.Context(), "a/broken", io.MultiReader(strings.NewReader(large), errReader{broken})); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, "blob_loose"); n != 2 {
		t.Errorf("%d contents are loose, want the two that readers may hold", n)
	}
	s.late(t)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if loose, pieces := s.count(t, "blob_loose"), s.count(t, "blob_pieces"); loose != 0 || pieces != 5 {
		t.Errorf("%d contents are loose and %d pieces are kept, want those of two blobs", loose, pieces)
	}
	if blobtest.Read(t, s, "a/large", 0) != large[1:] || blobtest.Read(t, s, "a/small", 0) != "two" {
		t.Error("a sweep changed what is kept")
	}
	if err := s.Remove(t.Context(), "nothing", "a"); err != nil {
		t.Fatal(err)
	}
	s.late(t)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"blobs", "blob_pieces", "blob_loose"} {
		if n := s.count(t, table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

// The check of the executions' store finds damage: missing pieces, and pieces without a blob.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	for _, name := range []string{"whole", "gap", "empty"} {
		s.put(t, name, strings.Repeat("x", 2*piece+1))
	}
	st, err := executions.Open(t.Context(), os.Getenv("PAWL_TEST_POSTGRES"), executions.Options{Schema: s.schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if found, err := st.Check(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("before the damage: %+v, %v", found, err)
	}
	s.run(t, `DELETE FROM {s}.blob_pieces p USING {s}.blobs b WHERE p.content = b.content AND b.name = 'gap' AND p.number = 1`)
	s.run(t, `DELETE FROM {s}.blob_pieces p USING {s}.blobs b WHERE p.content = b.content AND b.name = 'empty'`)
	s.run(t, `INSERT INTO {s}.blob_pieces VALUES (-5, 0, 'x'), (-5, 1, 'x')`)
	found, err := st.Check(t.Context())
	var say []string
	for _, f := range found {
		say = append(say, f.Say)
	}
	slices.Sort(say)
	want := []string{"blob empty lacks pieces", "blob gap lacks pieces", "the pieces of content -5 belong to no blob"}
	if err != nil || !slices.Equal(say, want) {
		t.Errorf("found %q, %v; want %q", say, err, want)
	}
	r, err := s.Get(t.Context(), "gap", 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); err == nil {
		t.Errorf("%d bytes of a damaged blob were taken for all of it", n)
	}
}

// A prefix may match more blobs than one statement removes.
func TestRemovePages(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	s.run(t, `INSERT INTO {s}.blobs (name, content, size) SELECT 'a/' || i, -i, 1 FROM generate_series(1, 5000) i`)
	s.put(t, "a", "itself")
	s.put(t, "a0", "beside it")
	if err := s.Remove(t.Context(), "none", "a", "a/1", "a"); err != nil {
		t.Fatal(err)
	}
	if blobs, loose := s.count(t, "blobs"), s.count(t, "blob_loose"); blobs != 1 || loose != 5001 {
		t.Errorf("%d blobs and %d loose contents are left, want 1 and 5001", blobs, loose)
	}
	if got := blobtest.Read(t, s, "a0", 0); got != "beside it" {
		t.Errorf("what lies beside the prefix has become %q", got)
	}
}

type errReader struct{ error }

func (e errReader) Read([]byte) (int, error) { return 0, e.error }

// hook calls a function when it is read.
type hook func()

func (h hook) Read([]byte) (int, error) {
	h()
	return 0, io.EOF
}

// A put that was given up as dead stores nothing, and returns an error that allows a retry.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	first := strings.Repeat("x", 2*piece)
	_, err := s.Put(t.Context(), "a", io.MultiReader(strings.NewReader(first), hook(func() {
		s.late(t)
		if err := s.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}), strings.NewReader("more")))
	if !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("put: %v", err)
	}
	if n := s.count(t, "blob_pieces") + s.count(t, "blobs") + s.count(t, "blob_loose"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// A put whose time has passed cannot continue even if a sweep has only begun to remove its content: a blob with a name would lack the
// removed pieces.
func TestGivenUpInPart(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{"before a piece": "more", "before the name": ""} {
		s := open(t, "")
		_, err := s.Put(t.Context(), "a", io.MultiReader(strings.NewReader(strings.Repeat("x", 2*piece)), hook(func() {
			s.late(t)
			s.run(t, `DELETE FROM {s}.blob_pieces WHERE number = 0`)
		}), strings.NewReader(rest)))
		if n := s.count(t, "blobs"); !errors.Is(err, blob.ErrUnavailable) || n != 0 {
			t.Errorf("%s: %v, and %d blobs", name, err, n)
		}
	}
}

// A sweep removes a large content in steps, and does not touch one that is being written.
func TestSweepsSideBySide(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	s.run(t, `INSERT INTO {s}.blob_loose SELECT -n, clock_timestamp() - interval '1 day' FROM generate_series(1, 120) n`)
	s.run(t, `INSERT INTO {s}.blob_pieces SELECT -n, p, 'x' FROM generate_series(1, 120) n, generate_series(0, 9) p`)
	s.run(t, `INSERT INTO {s}.blob_pieces SELECT -7, p, 'x' FROM generate_series(10, 900) p`)
	_, err := s.Put(t.Context(), "a", io.MultiReader(strings.NewReader(strings.Repeat("x", piece+1)), hook(func() {
		done := make(chan error)
		for range 3 {
			go func() { done <- s.Sweep(context.Background()) }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context()); err != nil { // what another sweep had locked
		t.Fatal(err)
	}
	if pieces, loose := s.count(t, "blob_pieces"), s.count(t, "blob_loose"); pieces != 2 || loose != 0 {
		t.Errorf("%d pieces and %d loose contents are left, want the two pieces of the blob", pieces, loose)
	}
}

// Memory does not grow with the blob.
func TestMemory(t *testing.T) {
	s := open(t, "")
	const size = 64 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	look := func() {
		runtime.ReadMemStats(&after)
		peak = max(peak, after.HeapInuse)
	}
	if _, err := s.Put(t.Context(), "large", io.TeeReader(io.LimitReader(zeros{}, size), looks(look))); err != nil {
		t.Fatal(err)
	}
	r, err := s.Get(t.Context(), "large", 1)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(looks(look), r); err != nil || n != size-1 {
		t.Errorf("read %d bytes: %v", n, err)
	}
	if grown := int64(peak) - int64(before.HeapInuse); grown > size/3 {
		t.Errorf("the heap grew by %d MB for a blob of %d MB", grown>>20, size>>20)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type looks func()

func (l looks) Write(p []byte) (int, error) {
	l()
	return len(p), nil
}
