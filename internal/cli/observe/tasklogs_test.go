package observe

import (
	"bytes"
	"strings"
	"testing"
)

// Lines of tasks are printed whole, whatever the chunks in which they were recorded.
func TestLinesOfTasksAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	text := "a\n\n" + long + "\n" + long + long
	for _, size := range []int{1, 7, 65_536, len(text)} {
		var out bytes.Buffer
		w := &lineWriter{to: &out, label: "fit"}
		for b := []byte(text); len(b) > 0; {
			n := min(size, len(b))
			if err := w.add(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if want := "fit | a\nfit | \nfit | " + long + "\nfit | " + long + long + "\n"; out.String() != want {
			t.Errorf("in chunks of %d bytes: %d lines with %d bytes, want 4 with %d", size, strings.Count(out.String(), "\n"), out.Len(), len(want))
		}
	}
}
