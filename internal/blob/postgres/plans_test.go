package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	executions "github.com/pawl-run/pawl/internal/store/postgres"
)

// tables is a schema for this test with two connections: prepared has the settings of a server's pool, where a statement is planned once
// for all parameters; plain has PostgreSQL's own settings, as behind a pooler in transaction mode, where each call is planned for its
// parameters.
type tables struct {
	prepared, plain *pgx.Conn
	schema          string
	sql             statements
	filled          bool // planned for its parameters, a statement may scan a small table completely
}

func newTables(t *testing.T) *tables {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED: PAWL_TEST_POSTGRES names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.")
	}
	ctx := context.Background()
	o := executions.Options{Schema: fmt.Sprintf("test_%016x", rand.Uint64())}
	if err := executions.Migrate(ctx, dsn, o); err != nil {
		t.Fatal(err)
	}
	pool, schema, err := executions.Pool(ctx, dsn, o, 1)
	if err != nil {
		t.Fatal(err)
	}
	one, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		one.Release()
		pool.Close()
		if _, err := plain.Exec(ctx, `DROP SCHEMA `+schema+` CASCADE`); err != nil {
			t.Error(err)
		}
		_ = plain.Close(ctx)
	})
	return &tables{prepared: one.Conn.Conn(), plain: plain, schema: schema, sql: render(schema)}
}

// fill puts blobs of one small piece each: logs/ex_1/1, logs/ex_2/1 …
func (b *tables) fill(t *testing.T, blobs int) {
	t.Helper()
	b.filled = true
	for _, s := range []string{
		`INSERT INTO {s}.blobs (name, content, size) SELECT 'logs/ex_' || i || '/1', i, 100 FROM generate_series(1, $1::bigint) i`,
		`INSERT INTO {s}.blob_pieces (content, number, data) SELECT i, 0, 'x' FROM generate_series(1, $1::bigint) i`,
		`INSERT INTO {s}.blob_loose (content, until) SELECT -i, now() FROM generate_series(1, $1::bigint) i`,
	} {
		if _, err := b.plain.Exec(t.Context(), strings.ReplaceAll(s, "{s}", b.schema), blobs); err != nil {
			t.Fatal(err)
		}
	}
}

// explain fails the test for each table that a plan reads completely.
func (b *tables) explain(t *testing.T, statement string, args ...any) {
	t.Helper()
	name := fmt.Sprintf("explained_%016x", rand.Uint64())
	if _, err := b.prepared.Prepare(t.Context(), name, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	nulls := strings.Join(slices.Repeat([]string{"NULL"}, len(args)), ",")
	check(t, statement, b.prepared.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) EXECUTE `+name+`(`+nulls+`)`, pgx.QueryExecModeSimpleProtocol))
	if b.filled {
		check(t, statement, b.plain.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+statement, args...))
	}
}

func check(t *testing.T, statement string, explained pgx.Row) {
	t.Helper()
	var text []byte
	if err := explained.Scan(&text); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, p := range plans {
		for _, say := range p.Plan.whole() {
			t.Errorf("%s\nin %s", say, strings.Join(strings.Fields(statement), " "))
		}
	}
}

// plan is a node in the output of EXPLAIN.
type plan struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Cond     string `json:"Index Cond"`
	Alias    string
	Plans    []plan
}

func (p *plan) whole() (all []string) {
	switch {
	case p.Relation == "blob_loose" && p.Alias == "blob_loose": // in a sweep
	case p.Type == "Seq Scan", strings.HasPrefix(p.Type, "Index") && p.Cond == "":
		all = append(all, fmt.Sprintf("%s is read from end to end by %s", p.Relation, p.Type))
	}
	for i := range p.Plans {
		all = append(all, p.Plans[i].whole()...)
	}
	return all
}

// given returns parameters for each statement that reads rows.
func (s *statements) given(prefixes []string) map[string][]any {
	return map[string][]any{
		s.add: {int64(1), 0, []byte("x"), 1.0}, s.name: {"a", int64(1), int64(1), 1.0}, s.drop: {int64(1)}, s.find: {"a"},
		s.piece: {int64(1), 0}, s.sweep: {sweepContents, sweepPieces, sweepBytes}, s.remove: {prefixes, 1.0, removeNames}, s.putWhole: {"a", []byte("x"), 1.0},
	}
}

// A statement may be planned while a table is empty, or was empty at the last ANALYZE: then a full scan seems to cost nothing, and the plan
// is kept when there are 300,000 blobs.
func TestPlansOfEmptyTables(t *testing.T) {
	t.Parallel()
	b := newTables(t)
	for _, table := range []string{"blobs", "blob_pieces", "blob_loose"} {
		if _, err := b.plain.Exec(t.Context(), `VACUUM ANALYZE `+b.schema+`.`+table); err != nil {
			t.Fatal(err)
		}
	}
	for statement, args := range b.sql.given([]string{"a"}) {
		b.explain(t, statement, args...)
	}
}

// Retention removes by 400 prefixes at once among very many blobs: each is looked up in the index, with any settings of the connection.
func TestPlansOfManyBlobs(t *testing.T) {
	t.Parallel()
	b := newTables(t)
	b.fill(t, 50_000)
	var prefixes []string
	for i := range 200 {
		prefixes = append(prefixes, fmt.Sprintf("logs/ex_%d", 1000*i), fmt.Sprintf("files/ex_%d", 1000*i))
	}
	for _, counted := range []bool{false, true} {
		if counted {
			if _, err := b.plain.Exec(t.Context(), `ANALYZE `+b.schema+`.blobs, `+b.schema+`.blob_pieces`); err != nil {
				t.Fatal(err)
			}
		}
		for statement, args := range b.sql.given(prefixes) {
			b.explain(t, statement, args...)
		}
	}

}

// One statement of a sweep removes a limited number of bytes, however large a content is, and reports that there is more.
func TestSweepStatement(t *testing.T) {
	t.Parallel()
	b := newTables(t)
	const large, small = 200, 900 // pieces of one content, and contents of one small piece
	for _, s := range []string{
		fmt.Sprintf(`INSERT INTO {s}.blob_pieces (content, number, data) SELECT 0, i, convert_to(repeat('x', %d), 'UTF8') FROM generate_series(0, %d) i`, pieceSize, large-1),
		fmt.Sprintf(`INSERT INTO {s}.blob_pieces (content, number, data) SELECT i, 0, 'x' FROM generate_series(1, %d) i`, small),
		fmt.Sprintf(`INSERT INTO {s}.blob_loose (content, until) SELECT i, now() - interval '1 day' FROM generate_series(0, %d) i`, small),
	} {
		if _, err := b.plain.Exec(t.Context(), strings.ReplaceAll(s, "{s}", b.schema)); err != nil {
			t.Fatal(err)
		}
	}
	count := func(table string) (n int) {
		t.Helper()
		if err := b.plain.QueryRow(t.Context(), `SELECT count(*) FROM `+b.schema+`.`+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	type state struct{ found, pieces, loose int }
	const full = sweepBytes / pieceSize
	for i, want := range []state{
		{sweepContents, large + small - full, small + 1},
		{sweepContents, small - (sweepContents - 1), small + 1 - sweepContents},
		{small + 1 - sweepContents, 0, 0},
		{0, 0, 0},
	} {
		var got state
		if err := b.prepared.QueryRow(t.Context(), b.sql.sweep, sweepContents, sweepPieces, sweepBytes).Scan(&got.found); err != nil {
			t.Fatal(err)
		}
		if got.pieces, got.loose = count("blob_pieces"), count("blob_loose"); got != want {
			t.Errorf("after statement %d: %+v, want %+v", i+1, got, want)
		}
	}
}
