package grade

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func ScoresCommand(a *app.App) *cobra.Command {
	var label string
	var q client.ScoreQuery
	var format output.Format
	c := &cobra.Command{
		Use:   "scores --label NAME=VALUE",
		Short: "Show accuracy and pass@k of evaluations with a label",
		Long: `Show how many evaluations with a label have passed, and estimate pass@k.

--by groups them by the values of a label, for example by model; it may be given several times. pass@k needs
several programs for each task: the label task, or that of --task, says which task a program is for. Evaluations
without a verdict, since the sandbox failed or they were cancelled, are not counted as failed.`,
		Example: `  pawl scores --label run=17 --by model
  pawl scores --label run=17 --by model --by language --task problem -k 1,10 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ok bool
			if q.Name, q.Value, ok = strings.Cut(label, "="); !ok || q.Name == "" {
				return exit.Usagef("pawl scores needs the label of the evaluations, as in --label run=17")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				scores, err := s.Scores(ctx, q)
				if err != nil {
					return err
				}
				return showScores(a, scores, &q, format)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&label, "label", "", "evaluations with this label, as name=value")
	f.StringArrayVar(&q.By, "by", nil, "group by the values of this label; may be repeated")
	f.StringVar(&q.Task, "task", "", "label that names the task of a program (default task)")
	f.IntSliceVarP(&q.K, "k", "k", nil, "of which pass@k is estimated (default 1, 10 and 100, where each task has as many)")
	output.FormatFlag(c, &format, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func showScores(a *app.App, scores *api.Scores, q *client.ScoreQuery, f output.Format) error {
	if scores.Open {
		a.Say("pawl: some evaluations with the label have not ended; they are not counted")
	}
	if scores.More {
		a.Say("pawl: at least %d have ended; only the first of them are counted", api.ScoresReach)
	}
	if f != output.AsTable {
		return output.WriteData(a.Out, f, scores)
	}
	if len(scores.Groups) == 0 {
		a.Say("pawl: no evaluation with the label %s=%s has ended", q.Name, q.Value)
		return nil
	}
	var ks []int
	for _, g := range scores.Groups {
		for _, p := range g.PassAt {
			if !slices.Contains(ks, p.K) {
				ks = append(ks, p.K)
			}
		}
	}
	slices.Sort(ks)
	t := &output.Table{}
	var head []string
	for _, name := range q.By {
		head = append(head, strings.ToUpper(name))
	}
	head = append(head, "PASSED", "JUDGED", "ACCURACY")
	for _, k := range ks {
		head = append(head, "PASS@"+strconv.Itoa(k))
	}
	t.Row(append(head, "TASKS", "NO VERDICT")...)
	for _, g := range scores.Groups {
		var row []string
		for _, name := range q.By {
			value, has := g.Labels[name]
			if !has {
				value = "-"
			}
			row = append(row, value)
		}
		row = append(row, strconv.Itoa(g.Passed), strconv.Itoa(g.Judged), share(g.Accuracy, g.Judged > 0))
		for _, k := range ks {
			i := slices.IndexFunc(g.PassAt, func(p api.PassAt) bool { return p.K == k })
			value := 0.0
			if i >= 0 {
				value = g.PassAt[i].Value
			}
			row = append(row, share(value, i >= 0))
		}
		t.Row(append(row, strconv.Itoa(g.Tasks), strconv.Itoa(g.Unjudged))...)
	}
	t.Write(a.Out)
	return nil
}

// share is a number from 0 to 1, or - if unknown.
func share(value float64, known bool) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf("%.4f", value)
}
