package define

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
)

type versionFigures struct {
	Name       string  `json:"name"`
	Version    int     `json:"version"`
	Executions int     `json:"executions"`
	Completed  int     `json:"completed"`
	Failed     int     `json:"failed"`    // or timed out
	Cancelled  int     `json:"cancelled"` // not counted for or against the version
	Open       int     `json:"open"`      // not ended yet
	FailedLow  float64 `json:"failed_low"`
	FailedRate float64 `json:"failed_rate"` // among those that completed or failed
	FailedHigh float64 `json:"failed_high"`
	P50        float64 `json:"p50_seconds"` // from start to end, among those that completed
	P99        float64 `json:"p99_seconds"`

	took []time.Duration
}

type versionComparison struct {
	Versions []*versionFigures `json:"versions"`
	Looked   int               `json:"looked"`   // executions of the definition, of any version
	Complete bool              `json:"complete"` // false: there are older ones that were not read
	Says     string            `json:"says"`
}

func CompareCommand(a *app.App) *cobra.Command {
	var f output.Format
	var since string
	var limit int
	c := &cobra.Command{
		Use:   "compare NAME@VERSION NAME@VERSION",
		Short: "Compare the results of two versions: how executions ended, and how long they took",
		Long: `Compare two versions of a workflow or an action: how many executions ended in which way, and how long they took.
An alias that stands for one version can be given instead of a version. The failure rate counts executions that
completed, failed or timed out; next to it is its 95% confidence interval (Wilson). Cancelled and unfinished
executions are counted, but not part of the rate. Times are from the start of the first attempt to the end of
completed executions.`,
		Example: `  pawl compare grade@3 grade@4 --since 1d
  pawl compare grade@stable grade@next`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter := client.Filter{Limit: 1000}
			var err error
			if filter.Since, err = app.Moment("--since", since); err != nil {
				return err
			}
			if err := listing.CheckLimit(limit); err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				c, err := compared(ctx, s, args, filter, limit)
				return output.Show(a.Out, f, c, err, func() { c.write(a) })
			})
		},
	}
	c.Flags().StringVar(&since, "since", "", "only executions created since then: 1d, 90m, or a time such as 2026-11-02T10:00:00Z")
	c.Flags().IntVar(&limit, "limit", 100_000, "largest number of executions to compare, newest first")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// compared reads the executions of two versions.
func compared(ctx context.Context, s *app.Session, args []string, filter client.Filter, limit int) (*versionComparison, error) {
	c := &versionComparison{Complete: true}
	for _, arg := range args {
		name, version, alias, err := definition.SplitAction(arg)
		if err != nil {
			return nil, exit.Usagef("%v", err)
		}
		if version == 0 && alias == "" {
			return nil, exit.Usagef("%s: say which version, as in %s@3 or %s@stable", arg, name, name)
		}
		d, err := definitionOf(ctx, s, arg)
		if err != nil {
			return nil, err
		}
		c.Versions = append(c.Versions, &versionFigures{Name: d.Name, Version: d.Version})
	}
	a, b := c.Versions[0], c.Versions[1]
	if a.Name != b.Name {
		return nil, exit.Usagef("%s and %s are two definitions: give two versions of one", a.Name, b.Name)
	}
	if a.Version == b.Version {
		return nil, exit.Usagef("both are %s@%d: give two versions", a.Name, a.Version)
	}
	filter.Action = a.Name
	for x, err := range s.All(ctx, filter) {
		if err != nil {
			return nil, err
		}
		if c.Looked == limit {
			c.Complete = false
			break
		}
		c.Looked++
		a.add(&x)
		b.add(&x)
	}
	a.sum()
	b.sum()
	c.Says = verdictOf(a, b)
	return c, nil
}

func (v *versionFigures) add(x *api.Execution) {
	if x.Version != v.Version {
		return
	}
	v.Executions++
	switch x.Status {
	case api.Completed:
		v.Completed++
		if !x.StartedAt.IsZero() {
			v.took = append(v.took, x.FinishedAt.Sub(x.StartedAt))
		}
	case api.Failed, api.TimedOut:
		v.Failed++
	case api.Cancelled:
		v.Cancelled++
	default:
		v.Open++
	}
}

func (v *versionFigures) sum() {
	if n := v.Completed + v.Failed; n > 0 {
		v.FailedRate = float64(v.Failed) / float64(n)
		v.FailedLow, v.FailedHigh = wilson(v.Failed, n)
	} else {
		v.FailedHigh = 1
	}
	if n := len(v.took); n > 0 {
		slices.Sort(v.took)
		v.P50, v.P99 = v.took[(n-1)/2].Seconds(), v.took[(n-1)*99/100].Seconds()
	}
}

// wilson is the 95% confidence interval of a rate after hits of n observations: Wilson's score interval, which also
// holds for a small n and for rates near 0 or 1.
func wilson(hits, n int) (low, high float64) {
	const z = 1.959964 // the normal distribution's 97.5th percentile
	p, m := float64(hits)/float64(n), float64(n)
	middle := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	under := 1 + z*z/m
	return max(0, (middle-half)/under), min(1, (middle+half)/under)
}

// verdictOf says what follows from the failures of two versions.
func verdictOf(a, b *versionFigures) string {
	name := func(v *versionFigures) string { return fmt.Sprintf("%s@%d", v.Name, v.Version) }
	for _, v := range []*versionFigures{a, b} {
		if v.Completed+v.Failed == 0 {
			return fmt.Sprintf("nothing can be said: no execution of %s has completed or failed", name(v))
		}
	}
	if a.FailedRate > b.FailedRate {
		a, b = b, a
	}
	if a.FailedHigh < b.FailedLow {
		return fmt.Sprintf("%s fails more often than %s", name(b), name(a))
	}
	return "the intervals of their failure rates overlap: these executions show no difference"
}

func (c *versionComparison) write(a *app.App) {
	t := output.Titled("VERSION", "EXECUTIONS", "COMPLETED", "FAILED", "CANCELLED", "OPEN", "FAILURE RATE (95%)", "P50", "P99")
	seconds := func(s float64) string {
		if s == 0 {
			return "-"
		}
		return strconv.FormatFloat(s, 'f', 3, 64) + "s"
	}
	for _, v := range c.Versions {
		rate := "-"
		if v.Completed+v.Failed > 0 {
			rate = fmt.Sprintf("%.1f%% (%.1f–%.1f)", 100*v.FailedRate, 100*v.FailedLow, 100*v.FailedHigh)
		}
		t.Row(fmt.Sprintf("%s@%d", v.Name, v.Version), strconv.Itoa(v.Executions), strconv.Itoa(v.Completed), strconv.Itoa(v.Failed), strconv.Itoa(v.Cancelled),
			strconv.Itoa(v.Open), rate, seconds(v.P50), seconds(v.P99))
	}
	t.Write(a.Out)
	a.Say("pawl: %s", c.Says)
	if !c.Complete {
		a.Say("pawl: looked at the latest %d executions of %s; there are older ones (--limit)", c.Looked, c.Versions[0].Name)
	}
}
