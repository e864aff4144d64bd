package postgres

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// What is written as columns is read as rows: one for each element, null or not, in the columns' order.
func TestRowsOfColumnsKeepNullsAndOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	names := []*string{new("c"), nil, new("a"), new(""), nil}
	sizes := []*int64{nil, new(int64(2)), new(int64(1)), nil, nil}
	rows, err := c.Query(ctx, `SELECT v.name IS NULL, coalesce(v.name, ''), coalesce(v.size, -1) FROM `+rowsOf("name text, size bigint")+` AS v`, names, sizes)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Null bool
		Name string
		Size int64
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[line])
	if err != nil {
		t.Fatal(err)
	}
	want := []line{{false, "c", -1}, {true, "", 2}, {false, "a", 1}, {false, "", -1}, {true, "", -1}}
	if !slices.Equal(got, want) {
		t.Errorf("rows: got %v, want %v", got, want)
	}
}
