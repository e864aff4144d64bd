package counted

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

// columns are the table's columns, in its order.
var columns = []string{"commits", "statements", "trips", "wal", "allocations", "bytes"}

// allowance is how far a figure may be off in either direction, in percent, unless the table gives it its own allowance.
const allowance = 3

// stated is the content of the table.
type stated struct {
	head []string // its first lines, up to the names of the columns
	rows []*row
}

type row struct {
	store, workload string
	cells           []cell
}

// cell is one figure; known is false for a figure that the store does not have.
type cell struct {
	known bool
	value float64
	timed float64 // not 0: the figure depends on timing. It may be so many percent higher, and is lower on a quiet machine
}

// allows reports whether a count agrees with the figure.
func (c cell) allows(v float64) bool {
	if c.timed > 0 {
		return v <= c.value*(1+c.timed/100)
	}
	return math.Abs(v-c.value) <= c.value*allowance/100
}

// readTable reads lines of store, workload and one figure for each column: 1.25, 1.25+8% or -.
func readTable(path string) (*stated, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &stated{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" || words[0] == "store" {
			s.head = append(s.head, line)
			continue
		}
		if len(words) != 2+len(columns) {
			return nil, fmt.Errorf("%s:%d: %d words: a store, a workload and %d figures", path, i+1, len(words), len(columns))
		}
		r := &row{store: words[0], workload: words[1]}
		for _, w := range words[2:] {
			c, err := readCell(w)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
			r.cells = append(r.cells, c)
		}
		s.rows = append(s.rows, r)
	}
	return s, nil
}

func readCell(word string) (cell, error) {
	if word == "-" {
		return cell{}, nil
	}
	value, percent, timed := strings.Cut(strings.TrimSuffix(word, "%"), "+")
	c := cell{known: true}
	var err error
	if c.value, err = strconv.ParseFloat(value, 64); err == nil && timed {
		c.timed, err = strconv.ParseFloat(percent, 64)
	}
	return c, err
}

func (c cell) String() string {
	switch {
	case !c.known:
		return "-"
	case c.timed > 0:
		return fmt.Sprintf("%s+%g%%", short(c.value), c.timed)
	}
	return short(c.value)
}

// short formats a value with four digits, and without a fraction when it is large.
func short(v float64) string {
	digits := max(0, 3-int(math.Floor(math.Log10(max(math.Abs(v), 0.0001)))))
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// row finds a row, or adds one.
func (s *stated) row(store, workload string) *row {
	for _, r := range s.rows {
		if r.store == store && r.workload == workload {
			return r
		}
	}
	r := &row{store: store, workload: workload, cells: make([]cell, len(columns))}
	s.rows = append(s.rows, r)
	return r
}

// off returns a message for each figure that differs from the row.
func (r *row) off(got figures) (all []string) {
	for i, column := range columns {
		v, counted := got[column]
		c := r.cells[i]
		switch {
		case counted != c.known:
			all = append(all, fmt.Sprintf("%s: the table says %s, counted: %t", column, c, counted))
		case counted && !c.allows(v):
			all = append(all, fmt.Sprintf("%s per execution: %s, and the table says %s (%+.1f %%): if the change is meant, go test ./e2e/counted -update writes it into %s, and the commit says why",
				column, short(v), c, 100*(v-c.value)/c.value, table))
		}
	}
	return all
}

// set replaces figures that are off and keeps the allowances.
func (r *row) set(got figures) {
	for i, column := range columns {
		c := &r.cells[i]
		v, counted := got[column]
		if !counted {
			*c = cell{}
			continue
		}
		if !c.known || !c.allows(v) {
			c.known, c.value = true, v
		}
	}
}

func (s *stated) write(path string) error {
	var b bytes.Buffer
	for _, line := range s.head {
		if !strings.HasPrefix(line, "store") {
			fmt.Fprintln(&b, line)
		}
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "store\tworkload\t%s\n", strings.Join(columns, "\t"))
	for _, r := range s.rows {
		fmt.Fprintf(w, "%s\t%s", r.store, r.workload)
		for _, c := range r.cells {
			fmt.Fprintf(w, "\t%s", c)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// The table notices a tenth more, and a tenth less where timing does not decide.
func TestTable(t *testing.T) {
	s := &stated{}
	r := s.row("postgres", "steady")
	r.set(figures{"commits": 0.2, "bytes": 1000})
	r.cells[0].timed = 8
	for _, c := range []struct {
		commits, bytes float64
		off            int
	}{{0.2, 1000, 0}, {0.22, 1000, 1}, {0.18, 1000, 0}, {0.21, 1020, 0}, {0.2, 1100, 1}, {0.2, 900, 1}} {
		if off := r.off(figures{"commits": c.commits, "bytes": c.bytes}); len(off) != c.off {
			t.Errorf("%v: %q", c, off)
		}
	}
	if off := r.off(figures{"commits": 0.2}); len(off) != 1 {
		t.Errorf("without bytes: %q", off)
	}
	path := t.TempDir() + "/counts.txt"
	s.head = []string{"# head"}
	if err := s.write(path); err != nil {
		t.Fatal(err)
	}
	again, err := readTable(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.row("postgres", "steady"); fmt.Sprint(got) != fmt.Sprint(r) {
		t.Errorf("read back: %v, not %v", got, r)
	}
}
