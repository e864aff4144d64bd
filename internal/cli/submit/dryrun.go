package submit

import (
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

const dryRunHelp = "say what it would be accepted as, or everything that is wrong with it, and run nothing"

// writeCheck prints the result of the check of a submission. A submission that would be refused is a wrong use of the
// command, as it is without --dry-run.
func writeCheck(a *app.App, v *api.SubmissionCheck, f output.Format) error {
	if f != output.AsTable && f != output.AsWide {
		if err := output.WriteData(a.Out, f, v); err != nil {
			return err
		}
	}
	if !v.Valid {
		return &exit.Error{Code: exit.Misuse, Err: &api.Problem{Type: api.ProblemInvalid, Title: "It would be refused", Errors: v.Problems}}
	}
	if f != output.AsTable && f != output.AsWide {
		return nil
	}
	var said strings.Builder
	said.WriteString("would run " + v.Action)
	if v.Version > 0 {
		fmt.Fprintf(&said, "@%d", v.Version)
	}
	if v.Queue != "" && v.Kind != "workflow" {
		said.WriteString(" in queue " + v.Queue)
	}
	if v.Key != "" {
		said.WriteString(", under key " + v.Key)
	}
	fmt.Fprintln(a.Out, said.String())
	return nil
}
