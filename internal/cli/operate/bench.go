package operate

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/loadtest"
	"github.com/pawl-run/pawl/internal/cli/local"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func BenchCommand(a *app.App) *cobra.Command {
	var o loadtest.Options
	var f output.Format
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure throughput and latency of this machine, and check the results",
		Long: `Submit executions to an engine in this process, run them, and check every history.

  noop     executions that do nothing: the cost of Pawl itself
  chain    workflows of three tasks, one after the other
  fanout   workflows of one task, then --width tasks, then one
  eval     evaluations of Python's print(1) in the sandbox

With --submit bulk, all executions are submitted in batches and run as they arrive. With --submit one, each of
--concurrency clients submits one, waits until it has ended, and submits the next; --concurrency 1 measures the
latency of an idle system. The database is a temporary file with full durability unless --store names one.`,
		Example: `  pawl bench --workload noop --count 20000
  pawl bench --workload noop --submit one --concurrency 100
  pawl bench --workload eval --count 200 -o json
  pawl bench --workload chain --count 2000 --repeat 5      the median of five runs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("store") {
				o.Store = "sqlite" // the configured store holds real work
			} else {
				o.Store = a.Config.Text("store")
			}
			o.Slots = a.Config.Slots() // a server's default, so that the figures are what users get
			o.Runtime = a.Config.List("runtime")[0]
			if err := o.Complete(); err != nil {
				return err
			}
			if o.Workload == "eval" {
				if err := local.MissingTool(a, "the workload eval", "python"); err != nil {
					return err
				}
			}
			o.Config, o.Log, o.Say, o.Progress = &a.Config, a.Logger(), a.Say, a.Err
			ctx, stop := app.Interruptible(cmd.Context())
			defer stop()
			report, err := loadtest.Run(ctx, o)
			if err != nil {
				return err
			}
			if f != output.AsTable {
				err = output.WriteData(a.Out, f, report)
			} else {
				report.Write(a.Out)
			}
			if err == nil && report.Stuck+report.OutOfOrder+report.Duplicates > 0 {
				return fmt.Errorf("promises were broken: %d stuck, %d out of order, %d duplicates", report.Stuck, report.OutOfOrder, report.Duplicates)
			}
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&o.Workload, "workload", "noop", "one of "+strings.Join(loadtest.Workloads, ", "))
	fl.IntVar(&o.Count, "count", 0, "number of executions (default 20000 noop, 2000 chain, 20 fanout, 200 eval)")
	fl.IntVar(&o.Concurrency, "concurrency", 0, "clients that submit at the same time (default 4 in bulk, 100 one by one)")
	fl.StringVar(&o.Submit, "submit", "", "bulk, or one (default bulk; one with --concurrency 1)")
	fl.IntVar(&o.Width, "width", 100, "tasks per fanout workflow")
	fl.IntVar(&o.Repeat, "repeat", 1, "number of runs, each on a fresh database; the median run is printed")
	_ = c.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(loadtest.Workloads, cobra.ShellCompDirectiveNoFileComp))
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}
