package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/cli/submit"
)

// rerunMany are the flags with which pawl rerun runs many executions again.
type rerunMany struct {
	listing.Selection
	atOnce int
}

func (m *rerunMany) flags(f *pflag.FlagSet) {
	m.Limit = 1 // a limit of 0 is refused when the selection is read; the server bounds the number of reruns itself
	m.Selection.Flags(f)
	f.IntVar(&m.atOnce, "at-once", 10, "with flags that select executions: reruns in progress at the same time")
}

// allDetails asks for the details of all executions of a plan: a program is given them, a person the first.
const allDetails = 10_000

// rerunSelected runs again what the flags select, or says what that would do.
func rerunSelected(ctx context.Context, a *app.App, s *app.Session, o *rerunOptions) error {
	f, err := o.many.Filter()
	if err != nil {
		return err
	}
	f.Limit = 0
	in := api.RerunManyRequest{Definition: o.definition, From: o.from, AtOnce: o.many.atOnce, Plan: o.plan}
	if o.plan && o.format != output.AsTable {
		in.Details = allDetails
	}
	r, err := s.RerunMany(ctx, f, in)
	if err != nil {
		return err
	}
	switch {
	case o.plan && o.format != output.AsTable:
		return output.WriteData(a.Out, o.format, r)
	case o.plan:
		showManyPlan(a, r)
	case r.Execution == "":
		a.Say("nothing is selected")
	default:
		fmt.Fprintln(a.Out, r.Execution)
		a.Say("it runs %s again, %d at a time", output.Plural(r.Selected, "execution", "executions"), o.many.atOnce)
		if !o.wait {
			app.SayLeft(a, s, r.Execution)
		}
	}
	if r.SearchedTo != nil {
		a.Say("executions older than %s were not looked at; for those, add --until %[1]s", r.SearchedTo.UTC().Format(time.RFC3339Nano))
	}
	if o.plan || !o.wait || r.Execution == "" {
		return nil
	}
	x, err := s.Get(ctx, r.Execution)
	if err != nil {
		return err
	}
	return submit.Watch(ctx, a, s, x, output.AsTable)
}

// showManyPlan says what running many executions again would do.
func showManyPlan(a *app.App, r *api.RerunMany) {
	if len(r.Planned) > 0 {
		t := &output.Table{}
		t.Row("ID", "ACTION", "REUSED", "RUNS", "REFUSED")
		for i := range r.Planned {
			p := &r.Planned[i]
			action, why := p.Action, ""
			if p.Version > 0 {
				action = fmt.Sprintf("%s@%d", p.Action, p.Version)
			}
			if p.Problem != nil {
				why = p.Problem.Detail
			}
			t.Row(p.ID, action, output.Count(p.Reused), output.Count(p.Runs), why)
		}
		t.Write(a.Out)
		fmt.Fprintln(a.Out)
	}
	for _, why := range r.Refusals {
		output.Printf(a.Out, "refused: %s, as %s: %s\n", output.Plural(why.Count, "execution", "executions"), why.First, why.Detail)
	}
	first := ""
	if r.Selected > r.Counted {
		first = fmt.Sprintf("; of the first %d, for which there was time", r.Counted)
	}
	output.Printf(a.Out, "%s selected%s, %d would run again, %d would be refused; %s would be reused, and %d or more executions run\n",
		output.Plural(r.Selected, "execution is", "executions are"), first, r.Counted-r.Refused, r.Refused, output.Plural(r.Reused, "outcome", "outcomes"), r.Runs)
}
