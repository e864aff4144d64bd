package output

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// Other users' texts reach a terminal without control sequences, and cannot start a line.
func TestTextsOfOthersAreCleaned(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b]0;PWNED\x07\x1b[2J\x1b[31mred\u202e\u009b31m\rb\x00\nFAKE LINE"
	var b strings.Builder
	Reasons(&b, hostile, []string{hostile}, []api.Advice{{Text: hostile, Command: "pawl resume " + hostile}, {Text: hostile}})
	type named string
	Printf(&b, "%s %v %s %s %d\n", hostile, named(hostile), json.RawMessage(hostile), api.Advice{Text: hostile}, 7)
	got := b.String()
	if strings.ContainsAny(got, "\x1b\x07\r\x00\u202e\u009b") || strings.Contains(got, "\nFAKE") || strings.Contains(got, "PWNED") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(got, " 7\n") || strings.Count(got, "FAKE LINE") != 9 {
		t.Errorf("texts are missing in %q", got)
	}
	if got := CleanLines(hostile + "\nthe last"); got != "ared31mb\nFAKE LINE\nthe last" {
		t.Errorf("lines: %q", got)
	}
	b.Reset()
	Printf(&b, "%v", errors.Join(errors.New("one\x1b[2J"), errors.New("two")))
	if b.String() != "one\ntwo" {
		t.Errorf("joined errors: %q", b.String())
	}
}
