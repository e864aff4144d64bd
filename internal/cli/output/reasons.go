package output

import (
	"fmt"
	"io"
)

// Reasons writes why something waits, and what would let it go on: texts, or advice.
func Reasons[T any](w io.Writer, summary string, facts []string, unblock []T) {
	fmt.Fprintln(w, summary)
	for _, fact := range facts {
		fmt.Fprintf(w, "  - %s\n", fact)
	}
	if len(unblock) > 0 {
		fmt.Fprintln(w, "What would unblock it:")
		for _, u := range unblock {
			fmt.Fprintf(w, "  - %v\n", u)
		}
	}
}
