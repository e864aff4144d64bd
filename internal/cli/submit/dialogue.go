package submit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/terminal"
)

// dialogueShown is the number of lines shown of a dialogue; -o json has all that was kept.
const dialogueShown = 12

// writeDialogue shows the end of what a program and an interactor wrote to each other.
func writeDialogue(a *app.App, c *api.CaseResult) {
	var lines []string
	for _, turn := range c.Transcript {
		by := "> "
		if turn.By == api.ByInteractor {
			by = "< "
		}
		if turn.Omitted > 0 {
			lines = append(lines, "…")
		}
		text, shown := turn.Text, terminal.Clean
		if len(turn.Base64) > 0 { // Text has U+FFFD for bytes that are not UTF-8; a line is shown as a Go string: \xff
			text, shown = string(turn.Base64), strconv.Quote
		}
		for line := range strings.Lines(text) {
			lines = append(lines, by+shown(strings.TrimSuffix(line, "\n")))
		}
	}
	if cut := len(lines) - dialogueShown; cut > 0 {
		lines = slices.Insert(lines[cut:], 0, "…")
	}
	output.Printf(a.Out, "\ndialogue of case %s (> program, < interactor)\n", terminal.Clean(c.Name))
	for _, line := range lines {
		output.Printf(a.Out, "  %s\n", line)
	}
}
