package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/terminal"
)

type waitOptions struct {
	label   string
	after   string
	outputs bool
	format  output.Format
}

func WaitCommand(a *app.App) *cobra.Command {
	var o waitOptions
	c := &cobra.Command{
		Use:   "wait (--label NAME=VALUE | ID...)",
		Short: "Wait until executions have ended, and print the result of each",
		Long: `Wait until all executions with a label, or the named executions, have ended. One line per execution goes to
standard output, for a label as they end, for IDs in the given order: ID, verdict (ok, or the error code), exit
code, processor time, memory, and the first line of the error. Progress goes to standard error. Exit code 0: all
were ok, 3: at least one was not.`,
		Example: `  pawl wait --label run=17
  pawl wait --label run=17 -o json --outputs      a line of JSON for each, with its output
  pawl wait ex_06e9v1t4m8kz0x2c5q7rbjwyna`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			name, value, ok := strings.Cut(o.label, "=")
			switch {
			case o.label == "" && len(ids) == 0:
				return exit.Usagef("pawl wait needs ids, or the label of what to wait for, as in: %s", app.FirstExample(cmd))
			case o.label != "" && len(ids) > 0:
				return exit.Usagef("pawl wait takes ids, or --label %s: leave one of them out", o.label)
			case o.after != "" && len(ids) > 0:
				return exit.Usagef("--after goes on behind an outcome of a --label; leave it out with ids")
			case slices.ContainsFunc(ids, isLabel):
				return exit.Usagef("pawl wait takes ids: did you mean --label %s?", ids[slices.IndexFunc(ids, isLabel)])
			case len(ids) > 0:
				return a.WithClient(cmd.Context(), app.Working, func(ctx context.Context, s *app.Session) error { return waitForIDs(ctx, a, s, ids, &o) })
			}
			if !ok || name == "" {
				return exit.Usagef("--label %q: write what to wait for as name=value", o.label)
			}
			return a.WithClient(cmd.Context(), app.Working, func(ctx context.Context, s *app.Session) error {
				return waitWith(ctx, a, s, client.OutcomeQuery{Name: name, Value: value, After: o.after, Outputs: o.outputs}, o.format)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.label, "label", "", "label of the executions, for example run=17")
	f.StringVar(&o.after, "after", "", "continue after the outcome with this cursor, as printed by -o json")
	f.BoolVar(&o.outputs, "outputs", false, "with -o json: what each has put out as well")
	output.FormatFlag(c, &o.format, output.AsTable, output.AsJSON)
	f.Lookup("output").Usage = "table: a line for each outcome; json: a line of JSON for each"
	return c
}

// isLabel reports whether an argument in place of an id is a label, as in run=17.
func isLabel(arg string) bool { return strings.Contains(arg, "=") }

// waitForIDs prints how executions end, in the order of the given ids. It looks all of them up first: a mistyped id
// is then an error at once, and not after the hours that earlier ones take.
func waitForIDs(ctx context.Context, a *app.App, s *app.Session, ids []string, o *waitOptions) error {
	found := make([]*api.Execution, len(ids))
	for i, id := range ids {
		var err error
		if found[i], err = s.Get(ctx, id); err != nil {
			return err
		}
	}
	p := progress{app: a, total: len(ids), verdicts: map[string]int{}, said: time.Now()}
	err := a.Following(ctx, s, func() error {
		for i := p.ended; i < len(ids); i++ {
			x := found[i]
			if !x.Status.Terminal() {
				var err error
				if x, err = s.Wait(ctx, ids[i]); err != nil {
					return err
				}
			}
			if x.Input = nil; !o.outputs {
				x.Output = nil
			}
			if err := writeOutcome(a, x, x, o.format); err != nil {
				return err
			}
			p.add(verdict(x))
		}
		return nil
	})
	return p.end(err)
}

// waitWith prints outcomes until there are no more.
func waitWith(ctx context.Context, a *app.App, s *app.Session, q client.OutcomeQuery, f output.Format) error {
	counts, err := s.Count(ctx, client.Filter{Labels: map[string]string{q.Name: q.Value}, TopLevel: true})
	if err != nil {
		return err
	}
	if counts.Total == 0 {
		return fmt.Errorf("nothing was submitted with the label %s=%s: pawl get executions -o wide shows the labels that there are", q.Name, q.Value)
	}
	p := progress{app: a, total: counts.Total, verdicts: map[string]int{}, said: time.Now()}
	err = a.Following(ctx, s, func() error {
		for o, err := range s.FollowOutcomes(ctx, q) {
			if err != nil {
				return err
			}
			if err := writeOutcome(a, &o.Execution, &o, f); err != nil {
				return err
			}
			q.After = o.Cursor
			p.add(verdict(&o.Execution))
		}
		return nil
	})
	return p.end(err)
}

// writeOutcome writes how an execution ended: as a line for people, or as a line of JSON.
func writeOutcome(a *app.App, x *api.Execution, document any, f output.Format) error {
	if f == output.AsJSON {
		return output.WriteLine(a.Out, document)
	}
	output.Printf(a.Out, "%s\n", outcomeLine(x))
	return nil
}

// verdict is how an execution ended in one word: ok, or the code of its error.
func verdict(x *api.Execution) string {
	switch {
	case x.Verdict != "":
		return x.Verdict
	case x.Status == api.Completed:
		return api.VerdictOK
	case x.Error != nil:
		return x.Error.Code
	}
	return string(x.Status)
}

// outcomeLine is one line about how an execution ended.
func outcomeLine(x *api.Execution) string {
	line := fmt.Sprintf("%s  %-14s", x.ID, verdict(x))
	for _, cell := range []string{exitText(x), output.Millis(x.CPUMS), output.Memory(x)} {
		line += fmt.Sprintf("  %9s", cell)
	}
	if x.Error != nil {
		first, _, _ := strings.Cut(x.Error.Message, "\n")
		line += "  " + terminal.Clean(first)
	}
	return strings.TrimRight(line, " ")
}

func exitText(x *api.Execution) string {
	if x.ExitCode == nil {
		return ""
	}
	return "exit " + strconv.Itoa(*x.ExitCode)
}

// progressEvery is the least interval between progress reports.
const progressEvery = time.Second

// progress reports the number of outcomes on standard error.
type progress struct {
	app      *app.App
	total    int
	ended    int
	verdicts map[string]int
	said     time.Time
}

func (p *progress) add(verdict string) {
	p.ended++
	p.verdicts[verdict]++
	if time.Since(p.said) >= progressEvery && p.ended < p.total {
		p.say()
	}
}

// end is the result of the command: a failure if not all verdicts were ok.
func (p *progress) end(err error) error {
	p.say()
	if err == nil && p.verdicts[api.VerdictOK] < p.ended {
		return &exit.Error{Code: exit.Failed}
	}
	return err
}

func (p *progress) say() {
	p.said = time.Now()
	var parts []string
	for _, v := range slices.SortedFunc(maps.Keys(p.verdicts), func(v, w string) int {
		return cmp.Or(cmp.Compare(p.verdicts[w], p.verdicts[v]), cmp.Compare(v, w))
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", p.verdicts[v], terminal.Clean(v)))
	}
	text := fmt.Sprintf("pawl: %d of %d have ended", p.ended, max(p.total, p.ended))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	p.app.Say("%s", text)
}
