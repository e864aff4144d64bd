package output

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/terminal"
)

// Printf formats text for people. Texts among args may come from other users, such as the reason of a pause or the name of a task: Printf
// cleans them, so that they cannot move the cursor, set the window's title, reverse the following text (U+202E), or start a new line.
func Printf(w io.Writer, format string, args ...any) {
	cleaned := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case error:
			cleaned[i] = CleanLines(arg.Error()) // joined errors take several lines
		case fmt.Stringer:
			cleaned[i] = terminal.Clean(arg.String())
		case json.RawMessage:
			cleaned[i] = terminal.Clean(string(arg))
		default:
			cleaned[i] = arg
			if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
				cleaned[i] = terminal.Clean(v.String())
			}
		}
	}
	fmt.Fprintf(w, format, cleaned...)
}

func CleanLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		if b.WriteString(terminal.Clean(line)); end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Reasons writes why something waits, and what would let it continue.
func Reasons(w io.Writer, summary string, facts []string, unblock []api.Advice) {
	Printf(w, "%s\n", summary)
	for _, fact := range facts {
		Printf(w, "  - %s\n", fact)
	}
	if len(unblock) > 0 {
		fmt.Fprintln(w, "What would unblock it:")
		for _, u := range unblock {
			Printf(w, "  - %s\n", u)
		}
	}
}
