package output

import (
	"fmt"
	"io"

	"github.com/pawl-run/pawl/api"
)

// Reasons writes why something waits, and what would let it go on.
func Reasons(w io.Writer, summary string, facts []string, unblock []api.Advice) {
	fmt.Fprintln(w, summary)
	for _, fact := range facts {
		fmt.Fprintf(w, "  - %s\n", fact)
	}
	if len(unblock) > 0 {
		fmt.Fprintln(w, "What would unblock it:")
		for _, u := range unblock {
			fmt.Fprintf(w, "  - %s\n", u)
		}
	}
}
