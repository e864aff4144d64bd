package steer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// rerunMany are the flags with which pawl rerun reruns many executions.
type rerunMany struct {
	listing.Selection
	atOnce int
	resume string
}

func (m *rerunMany) flags(f *pflag.FlagSet) {
	m.Limit = api.BulkLimit
	m.Selection.Flags(f)
	f.IntVar(&m.atOnce, "at-once", 10, "with flags that select executions: reruns in progress at the same time")
	f.StringVar(&m.resume, "resume", "", "with the same flags as before: continue the interrupted reruns with this ID")
}

// rerunSelected reruns the selected executions, or prints what that would do.
func rerunSelected(ctx context.Context, a *app.App, s *app.Session, o *rerunOptions) error {
	f, err := o.many.Filter()
	if err != nil {
		return err
	}
	many, err := s.RerunMany(ctx, f, o.many.resume)
	if err != nil {
		return err
	}
	in := api.RerunRequest{From: o.from, Definition: o.definition}
	if o.plan {
		return planMany(ctx, a, many, in, o)
	}
	if len(many.Executions) == 0 {
		a.Say("nothing is selected")
		return nil
	}
	all := len(many.Executions)
	a.Say("%s to run again, %d at a time; after an interruption repeat the command with --resume %s",
		output.Plural(all, "execution", "executions"), o.many.atOnce, many.ID)
	refused, ends, ended := refusals{}, map[api.Status]int{}, 0
	for r, err := range many.Run(ctx, in, o.many.atOnce) {
		if err != nil {
			a.Say("%d of %d reruns have ended; repeat the command with --resume %s to continue", ended, all, many.ID)
			return err
		}
		ended++
		if r.Refused != nil {
			refused.add(&r)
			continue
		}
		ends[r.New.Status]++
		output.Printf(a.Out, "%d of %d: %s again as %s, %s\n", ended, all, r.Of, r.New.ID, r.New.Status)
	}
	refused.show(a)
	if n := all - ends[api.Completed]; n > 0 {
		return fmt.Errorf("%d of %s did not complete, %d of these because the rerun was refused", n, output.Plural(all, "rerun", "reruns"), refused.count())
	}
	return nil
}

// shownPlans is the number of plans in a table; formats for programs have all.
const shownPlans = 50

type manyPlan struct {
	Selected int         `json:"selected"`
	Refused  int         `json:"refused"`
	Reused   int         `json:"reused"`
	Runs     int         `json:"runs"` // at least
	Planned  []planOfOne `json:"planned"`
}

type planOfOne struct {
	ID      string       `json:"id"`
	Action  string       `json:"action,omitempty"`
	Version int          `json:"version,omitempty"`
	Reused  int          `json:"reused,omitempty"`
	Runs    int          `json:"runs,omitempty"` // at least
	Problem *api.Problem `json:"problem,omitempty"`
}

// planMany prints what rerunning many executions would do.
func planMany(ctx context.Context, a *app.App, many *client.ManyReruns, in api.RerunRequest, o *rerunOptions) error {
	refused, plans := refusals{}, map[string]planOfOne{}
	sum := manyPlan{Selected: len(many.Executions), Planned: []planOfOne{}}
	for r, err := range many.Plan(ctx, in, o.many.atOnce) {
		if err != nil {
			return err
		}
		p := planOfOne{ID: r.Of, Problem: r.Refused}
		if r.Refused != nil {
			refused.add(&r)
		} else {
			p.Action, p.Version, p.Reused, p.Runs = r.Plan.Action, r.Plan.Version, r.Plan.Reused, leastRuns(r.Plan)
		}
		plans[r.Of] = p
		sum.Reused, sum.Runs = sum.Reused+p.Reused, sum.Runs+p.Runs
	}
	sum.Refused = refused.count()
	for _, id := range many.Executions {
		sum.Planned = append(sum.Planned, plans[id])
	}
	if o.format != output.AsTable {
		return output.WriteData(a.Out, o.format, sum)
	}
	t := output.Titled("ID", "ACTION", "REUSED", "RUNS", "REFUSED")
	for _, p := range sum.Planned[:min(len(sum.Planned), shownPlans)] {
		action, why := p.Action, ""
		if p.Version > 0 {
			action = fmt.Sprintf("%s@%d", p.Action, p.Version)
		}
		if p.Problem != nil {
			why = p.Problem.Detail
		}
		t.Row(p.ID, action, output.Count(p.Reused), output.Count(p.Runs), why)
	}
	if len(sum.Planned) > 0 {
		t.Write(a.Out)
		fmt.Fprintln(a.Out)
	}
	refused.show(a)
	output.Printf(a.Out, "%s selected, %d would run again, %d would be refused; %s would be reused, and %d or more executions run\n",
		output.Plural(sum.Selected, "execution is", "executions are"), sum.Selected-sum.Refused, sum.Refused, output.Plural(sum.Reused, "outcome", "outcomes"), sum.Runs)
	return nil
}

// leastRuns is the least number of executions that a rerun runs, by its plan.
func leastRuns(p *api.RerunPlan) (n int) {
	if len(p.Tasks) == 0 {
		return 1
	}
	for i := range p.Tasks {
		n += p.Tasks[i].Runs
	}
	for i := range p.Within {
		for j := range p.Within[i].Tasks {
			n += p.Within[i].Tasks[j].Runs
		}
	}
	return n
}

// refusals are the executions that cannot be rerun, by reason.
type refusals map[string][]string

func (r refusals) add(b *client.BulkRerun) { r[b.Refused.Detail] = append(r[b.Refused.Detail], b.Of) }

func (r refusals) count() (n int) {
	for _, ids := range r {
		n += len(ids)
	}
	return n
}

// show prints each reason once, the most frequent first.
func (r refusals) show(a *app.App) {
	for _, why := range slices.SortedFunc(maps.Keys(r), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(r[y]), len(r[x])), cmp.Compare(x, y))
	}) {
		output.Printf(a.Out, "refused: %s, as %s: %s\n", output.Plural(len(r[why]), "execution", "executions"), r[why][0], why)
	}
}
