package sqlite

import (
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/store/storetest"
)

func TestViews(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, InMemory)
	storetest.Views(t, s, func(text string) (all [][]string) {
		err := s.read(t.Context(), func(c *conn) error {
			q := c.prepare(text)
			defer q.free()
			for q.next() {
				line := make([]string, sqlite3.Xsqlite3_column_count(c.tls, q.p))
				for i := range line {
					line[i] = q.getText()
				}
				all = append(all, line)
			}
			return q.done()
		})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return all
	})
}
