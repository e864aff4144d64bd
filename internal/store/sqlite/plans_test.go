package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/store/relational"
)

// Every table is read by a condition on an index: SQLite plans by the schema alone, independent of the content. The names in rows are not
// tables: the input (v), the rows of a recursion (t) and of a subquery.
func TestPlans(t *testing.T) {
	t.Parallel()
	rows := []string{"CONSTANT ROW", "v", "t", "held", "(subquery-1)"}
	s := mustOpen(t, filepath.Join(t.TempDir(), "pawl.db"))
	for _, q := range relational.Statements {
		e := s.w.prepare("EXPLAIN QUERY PLAN " + q.SQLite)
		for e.next() {
			e.skip(3)
			step := e.getText()
			if table, ok := strings.CutPrefix(step, "SCAN "); ok && !q.Whole && !slices.Contains(rows, table) {
				t.Errorf("%s\nin %s", step, strings.Join(strings.Fields(q.SQLite), " "))
			}
		}
		if err := e.done(); err != nil {
			t.Errorf("%s: %v", q.SQLite, err)
		}
		e.free()
	}
}
