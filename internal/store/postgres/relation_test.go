package postgres

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/store/relational"
)

// Arrays of columns are read back as rows: one for each element, null or not, in the order of the columns.
func TestRowsOfColumnsKeepNullsAndOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	type named struct {
		name *string
		size int64
	}
	files := relation[named, *named]{
		{"name", oidText, func(c *column, x named) {
			if x.name == nil {
				c.null()
			} else {
				c.text(*x.name)
			}
		}, nil},
		{"size", oidInt8, func(c *column, x named) { c.intOrNull(x.size) }, nil},
	}
	var a args
	a.columns(files.columns(named{new("c"), 0}, named{nil, 2}, named{new("a"), 1}, named{new(""), 0}, named{}))
	rr := c.PgConn().ExecParams(ctx, `SELECT v.name IS NULL, coalesce(v.name, ''), coalesce(v.size, -1) FROM `+files.rows()+` AS v`,
		a.params, nil, binaryFormat, binaryFormat)
	type line struct {
		Null bool
		Name string
		Size int64
	}
	var got []line
	for rr.NextRow() {
		r := rows{values: rr.Values()}
		got = append(got, line{r.bool(), r.text(), r.int()})
	}
	if _, err := rr.Close(); err != nil {
		t.Fatal(err)
	}
	want := []line{{false, "c", -1}, {true, "", 2}, {false, "a", 1}, {false, "", -1}, {true, "", -1}}
	if !slices.Equal(got, want) {
		t.Errorf("rows: got %v, want %v", got, want)
	}
}

// Each relation that is written to a table names all required columns of the table, except "history_from", with their types.
func TestRelationsAreTheTablesColumns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	schema := emptySchema(t)
	open(t, server(t), schema)
	c, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	tables := map[string]map[string]string{
		"live": typesOf(live), "ended": typesOf(ended), "payloads": typesOf(payloads), "labels": typesOf(labels), "children": typesOf(children),
		"marks": typesOf(marks), "idempotency": typesOf(idempotency), "changes": typesOf(changes), "inbox": typesOf(inbox),
		"chunks": typesOf(logChunks),
	}
	for table, columns := range relational.Inserted {
		tables[table] = map[string]string{}
		for name, of := range columns {
			tables[table][name] = string(of)
		}
	}
	for table, got := range tables {
		rows, err := c.Query(ctx, `SELECT column_name, data_type, is_nullable = 'YES' FROM information_schema.columns
			WHERE table_schema = $1 AND table_name = $2`, schema, table)
		if err != nil {
			t.Fatal(err)
		}
		type column struct {
			Name, Type string
			Nullable   bool
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			t.Errorf("there is no table %s", table)
		}
		for _, k := range all {
			of, named := got[k.Name]
			if !named && !k.Nullable && k.Name != "history_from" || named && of != k.Type {
				t.Errorf("%s.%s is %s, and its relation has %q", table, k.Name, k.Type, of)
			}
			delete(got, k.Name)
		}
		for name := range got {
			t.Errorf("%s has no column %s", table, name)
		}
	}
}

func typesOf[W, R any](t relation[W, R]) map[string]string {
	all := make(map[string]string, len(t))
	for _, f := range t {
		all[f.name] = f.of.String()
	}
	return all
}
