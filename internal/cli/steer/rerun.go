package steer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/cli/submit"
)

type rerunOptions struct {
	submit.RunOptions // only input and set are used
	failed            bool
	from, only        []string
	give              []string
	by                string
	definition        string
	plan, wait        bool
	format            output.Format
	many              rerunMany
}

func RerunCommand(a *app.App) *cobra.Command {
	var o rerunOptions
	c := &cobra.Command{
		Use:   "rerun ID | --where CONDITION",
		Short: "Rerun a finished execution from where it failed, as a new execution",
		Long: `Rerun a finished execution as a new execution that refers to the old one, which never changes. Of a workflow,
completed tasks keep their results if their work and input are the same and no task before them runs again;
tasks that failed, timed out, were cancelled or did not start run again, and so do all tasks after them. --plan
prints what would be reused, what would run, and why, and changes nothing.

With flags that select executions, all ended executions that did not complete are rerun, a few at a time. The
command stays until the last rerun has ended. After an interruption, reruns in progress continue; the same command
with --resume and the ID that it printed continues with the rest, and reruns nothing twice.`,
		Example: `  pawl rerun ex_… --plan
  pawl rerun ex_… --wait                              stay until it has ended
  pawl rerun ex_… --from deploy                       this task and everything after it
  pawl rerun ex_… --from 'test[3]'                    one item of a foreach, and everything after it
  pawl rerun ex_… --from 'deploy/verify[3]'           within the workflow that the task deploy ran
  pawl rerun ex_… --only render                       this task alone; what comes after it is left out
  pawl rerun ex_… --give 'build={"image": "web:7"}'    build is taken to have put that out
  pawl rerun ex_… --set region=north                  with another input
  pawl rerun ex_… --definition latest                 on the definition as it is now
  pawl rerun --where 'label.team = docs and status = failed' --plan
  pawl rerun --where 'label.team = docs and status = failed' --at-once 5`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			many := o.many.Any()
			switch {
			case len(args) == 0 && !many:
				return exit.Usagef("pawl rerun needs ID, or flags that select executions, such as --where 'label.team = docs and status = failed'")
			case len(args) == 1 && many:
				return exit.Usagef("give an id, or flags that select executions, not both")
			case many && (o.failed || len(o.only)+len(o.give)+len(o.Set) > 0 || o.Input+o.by != ""):
				return exit.Usagef("--failed, --only, --give, --by, --input and --set are for one execution: leave them out, or name it")
			case !many && (cmd.Flags().Changed("at-once") || o.many.resume != ""):
				return exit.Usagef("--at-once and --resume go with flags that select executions, such as --where")
			case o.many.atOnce < 1:
				return exit.Usagef("--at-once %d: give 1 or more, or leave it out for 10", o.many.atOnce)
			case o.failed && len(o.from) > 0:
				return exit.Usagef("--failed is the default without --from: leave out one of them")
			case len(o.only) > 0 && (o.failed || len(o.from) > 0):
				return exit.Usagef("--only runs tasks alone, --from and --failed with everything after them: leave out one of them")
			}
			if o.plan && o.wait {
				return exit.Usagef("--plan starts nothing that --wait could wait for: leave out one of them")
			}
			if !o.plan && o.format != output.AsTable {
				return exit.Usagef("-o is for the plan: add --plan")
			}
			m := app.Reading
			if o.wait || many && !o.plan {
				m = app.Working
			}
			return a.WithClient(cmd.Context(), m, func(ctx context.Context, s *app.Session) error {
				if many {
					return rerunSelected(ctx, a, s, &o)
				}
				return rerun(ctx, a, s, args[0], &o)
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&o.failed, "failed", false, "rerun failed tasks and the tasks after them (the default)")
	f.StringArrayVar(&o.from, "from", nil,
		"task to run again although it completed: build, item 'test[3]', or 'deploy/verify[3]' in a sub-workflow; may be repeated")
	f.StringArrayVar(&o.only, "only", nil,
		"run only this task, item or path: earlier results are reused, later tasks left out; may be repeated")
	f.StringArrayVar(&o.give, "give", nil,
		"output to use instead of running a task or item: build=JSON or 'test[3]=@FILE'; may be repeated")
	f.StringVar(&o.by, "by", "", "with --give: who supplies the output (default: the current user)")
	app.JSONVar(f, &o.Input, "input", "", "new input as JSON, or @FILE (@- for standard input)")
	f.StringArrayVar(&o.Set, "set", nil,
		"one field of the input, for example limit=5 or user.name=ada; the value is read as JSON, else as text")
	f.StringVar(&o.definition, "definition", "", "definition for the rerun: same (default), latest, or name@version")
	f.BoolVar(&o.plan, "plan", false, "print what would be reused, what would run, and why; nothing runs")
	f.BoolVar(&o.wait, "wait", false, "watch it until it ends, and exit with its result")
	o.many.flags(f)
	output.FormatFlag(c, &o.format, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func rerun(ctx context.Context, a *app.App, s *app.Session, id string, o *rerunOptions) error {
	in := api.RerunRequest{From: o.from, Only: o.only, Definition: o.definition}
	if err := addOverrides(a, &in, o); err != nil {
		return err
	}
	if o.Input == "" && len(o.Set) > 0 {
		x, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		if in.Input, err = submit.WithFields(x.Input, o.Set); err != nil {
			return err
		}
	} else {
		var err error
		if in.Input, err = submit.InputOf(a, &o.RunOptions); err != nil {
			return err
		}
	}
	if o.plan {
		p, err := s.PlanRerun(ctx, id, in)
		return output.Show(a.Out, o.format, p, err, func() { showPlan(a, p) })
	}
	x, err := s.Rerun(ctx, id, in)
	if err != nil {
		return err
	}
	if !o.wait {
		fmt.Fprintln(a.Out, x.ID)
		app.SayLeft(a, s, x.ID)
		return nil
	}
	return submit.Watch(ctx, a, s, x, output.AsTable)
}

// addOverrides reads the outputs that replace those of tasks.
func addOverrides(a *app.App, in *api.RerunRequest, o *rerunOptions) error {
	if len(o.give) == 0 {
		if o.by != "" {
			return exit.Usagef("--by says who gives an output: add --give")
		}
		return nil
	}
	in.Outputs = map[string]json.RawMessage{}
	for _, text := range o.give {
		task, value, has := strings.Cut(text, "=")
		if !has || task == "" || value == "" {
			return exit.Usagef("--give %s: it is written TASK=JSON, or TASK=@FILE", text)
		}
		if _, twice := in.Outputs[task]; twice {
			return exit.Usagef("--give %s: it is given twice", task)
		}
		data, err := a.Given("--give "+task, value)
		if err != nil {
			return err
		}
		data = bytes.TrimSpace(data)
		if err := app.CheckJSON("--give "+task, data); err != nil {
			return exit.Usagef("--give %s: %.100q is not JSON: %v; write a text in quotes: '\"text\"'", task, data, err)
		}
		in.Outputs[task] = data
	}
	in.By = o.by
	return app.FillBy(&in.By, "--by")
}

func showPlan(a *app.App, p *api.RerunPlan) {
	action := p.Action
	if p.Version > 0 {
		action = fmt.Sprintf("%s@%d", p.Action, p.Version)
	}
	if len(p.Tasks) == 0 {
		output.Printf(a.Out, "%s would run again: it has no tasks whose outcomes could be reused\n", action)
		return
	}
	t := output.Titled("TASK", "DECISION", "REUSED", "RUNS", "WHY")
	planRows(t, "", p.Tasks)
	for i := range p.Within {
		planRows(t, p.Within[i].Path+"/", p.Within[i].Tasks)
	}
	t.Write(a.Out)
	switch {
	case p.Status != "":
		output.Printf(a.Out, "\nNothing would run: the rerun of %s ends at once as %s\n", action, p.Status)
	default:
		output.Printf(a.Out, "\nThe rerun of %s would reuse the outcomes of %s\n", action, output.Plural(p.Reused, "execution", "executions"))
	}
}

// planRows adds rows for the tasks of one workflow; path leads to it.
func planRows(t *output.Table, path string, tasks []api.RerunTask) {
	for i := range tasks {
		k := &tasks[i]
		t.Row(path+k.Task, k.Decision, output.Count(k.Reused), runs(k), k.Reason)
	}
}

const shownRuns = 5

// runs says how many items of a task run, and which.
func runs(k *api.RerunTask) string {
	if len(k.Items) == 0 || k.Reused == 0 {
		return output.Count(k.Runs)
	}
	var which []string
	for _, i := range k.Items[:min(len(k.Items), shownRuns)] {
		which = append(which, fmt.Sprintf("[%d]", i))
	}
	if k.Runs > len(which) {
		which = append(which, "…")
	}
	return fmt.Sprintf("%d: %s", k.Runs, strings.Join(which, " "))
}

// shownAgain is the number of reruns, and of retries, that are listed per execution.
const shownAgain = 10

// Again lists the executions that a filter selects, the newest first: the reruns of an execution, or its retries.
func Again(ctx context.Context, s *app.Session, f client.Filter) (string, error) {
	f.Limit = shownAgain
	page, err := s.List(ctx, f)
	if err != nil {
		return "", err
	}
	var all []string
	for i := range page.Executions {
		all = append(all, fmt.Sprintf("%s (%s)", page.Executions[i].ID, page.Executions[i].Status))
	}
	if page.NextCursor != "" {
		all = append(all, "…")
	}
	return strings.Join(all, ", "), nil
}
