package observe

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func LogsCommand(a *app.App) *cobra.Command {
	var q client.LogQuery
	var follow, sum bool
	var tail string
	var find client.LogSearch
	var f output.Format
	c := &cobra.Command{
		Use:   "logs ID",
		Short: "Print the logs of an execution",
		Long: `Print the logs of an execution, byte for byte: its standard output to standard output, everything else to
standard error. With --stream only that stream is printed, to standard output.

For a workflow the logs of its tasks are printed, including sub-workflows: line by line, with the name of the
task in front, in the order in which the tasks started. --attempt then selects that attempt of each task.`,
		Example: `  pawl logs ex_… -f                    until it has ended
  pawl logs ex_… --stream stderr
  pawl logs ex_… --tail 64kB -f        the end of it, and what follows
  pawl logs ex_… --summary             how much there is of each stream
  pawl logs ex_… --grep panic          only the lines that have it, found by the server
  pawl logs ex_… -o json               a chunk per line, with times and offsets`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Stream != "" && q.Stream != "stdout" && q.Stream != "stderr" && q.Stream != "log" {
				return exit.Usagef("--stream %q: one of stdout, stderr, log", q.Stream)
			}
			if find.Text == "" && (find.Regexp || cmd.Flags().Changed("grep")) {
				return exit.Usagef("--grep says nothing to search for: write it as --grep TEXT")
			}
			if find.Text != "" && (follow || tail != "") {
				return exit.Usagef("--grep searches the logs written so far: leave out --follow and --tail")
			}
			if q.Before != "" && (follow || find.Text != "" || sum) {
				return exit.Usagef("--before is for logs written so far: leave out --follow, --grep and --summary")
			}
			if tail != "" {
				size, err := api.ParseSize(tail)
				if err != nil || size < 1 {
					return exit.Usagef("--tail %q: write how many bytes, as 64kB or 1MiB", tail)
				}
				q.Tail = int64(size)
			}
			if sum && (follow || tail != "" || find.Text != "" || q.Stream != "") {
				return exit.Usagef("--summary prints no logs: of the other flags it goes with --attempt and --output")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if sum {
					return sumLogs(ctx, a, s.Client, args[0], q.Attempt, f)
				}
				x, err := s.Get(ctx, args[0])
				if err != nil {
					return err
				}
				if x.Kind == "workflow" && (tail != "" || find.Text != "" || q.Before != "") {
					return exit.Usagef("--tail, --before and --grep are for one execution, and %s is a workflow: give the id of one of its tasks", x.ID)
				}
				if find.Text != "" {
					find.Attempt, find.Stream = q.Attempt, q.Stream
					return grep(ctx, a, s.Client, x.ID, find, f)
				}
				if x.Kind == "workflow" {
					return workflowLogs(ctx, a, s, x, q, f, follow)
				}
				write := func(chunk *api.LogChunk) error {
					if f == output.AsJSON {
						return output.WriteLine(a.Out, chunk)
					}
					to := a.Err
					if chunk.Stream == "stdout" || q.Stream != "" {
						to = a.Out
					}
					_, err := to.Write(chunk.Bytes())
					return err
				}
				if follow && !s.Embedded {
					s.Leave()
					for chunk, err := range s.FollowLogs(ctx, args[0], q) {
						if err != nil {
							return err
						}
						if err := write(&chunk); err != nil {
							return err
						}
					}
					return nil
				}
				status, err := allLogs(ctx, s.Client, args[0], q, write)
				if err == nil && follow && !status.Terminal() {
					app.SayIdle(a, args[0], status)
				}
				return err
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "follow until the execution has ended")
	c.Flags().StringVar(&q.Stream, "stream", "", "only stdout, stderr or log")
	c.Flags().IntVar(&q.Attempt, "attempt", 0, "only this attempt; 0: all")
	c.Flags().BoolVar(&sum, "summary", false, "instead of logs, print how many bytes each attempt wrote to each stream, and when")
	c.Flags().StringVar(&tail, "tail", "", "only about this much of the end, for example 64kB")
	c.Flags().StringVar(&q.Before, "before", "",
		"only the part before this chunk, for example 1.42 for chunk 42 of attempt 1 (-o json shows both)")
	c.Flags().StringVar(&find.Text, "grep", "", "only lines that contain this text; long lines are cut around it")
	c.Flags().BoolVar(&find.Regexp, "regexp", false, "treat --grep as a regular expression, for example (?i)error|panic")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON)
	c.Flags().Lookup("output").Usage = "table: the bytes as they are; json: a chunk, or a line of --grep with its place, per line"
	return c
}

// sumLogs prints the amount of an execution's output.
func sumLogs(ctx context.Context, a *app.App, c *client.Client, id string, attempt int, f output.Format) error {
	all, err := c.LogSummary(ctx, id, attempt)
	if err != nil {
		return err
	}
	if f == output.AsJSON {
		return output.WriteData(a.Out, f, all)
	}
	t := output.Titled("ATTEMPT", "STREAM", "BYTES", "FIRST", "LAST")
	for i := range all.Streams {
		s := &all.Streams[i]
		t.Row(strconv.Itoa(s.Attempt), s.Stream, strconv.FormatInt(s.Bytes, 10), stamp(s.FirstAt), stamp(s.LastAt))
	}
	t.Write(a.Out)
	return nil
}

// grep prints the lines that a search finds.
func grep(ctx context.Context, a *app.App, c *client.Client, id string, find client.LogSearch, f output.Format) error {
	n := 0
	for m, err := range c.AllMatches(ctx, id, find) {
		if err != nil {
			return err
		}
		n++
		if f == output.AsJSON {
			err = output.WriteLine(a.Out, m)
		} else {
			_, err = fmt.Fprintln(a.Out, m.Line)
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		a.Say("pawl: no line of %s has %q", id, find.Text)
	}
	return nil
}

// allLogs passes every existing chunk to write, and returns the execution's status.
func allLogs(ctx context.Context, c *client.Client, id string, q client.LogQuery, write func(*api.LogChunk) error) (api.Status, error) {
	if q.Before != "" && q.Tail == 0 {
		q.After = "0.0"
	}
	for {
		page, err := c.Logs(ctx, id, q)
		if err != nil {
			return "", err
		}
		for i := range page.Chunks {
			if err := write(&page.Chunks[i]); err != nil {
				return "", err
			}
		}
		if !page.More || len(page.Chunks) == 0 {
			return page.Status, nil
		}
		q.After = page.NextCursor
	}
}

func EventsCommand(a *app.App) *cobra.Command {
	var after int64
	var follow bool
	var f output.Format
	c := &cobra.Command{
		Use:   "events ID",
		Short: "Print the history of an execution: every event, in order",
		Example: `  pawl events ex_… -f                until it has ended
  pawl events ex_… --after 12 -o json  an event per line`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				write := func(e *api.Event) error {
					if f == output.AsJSON {
						return output.WriteLine(a.Out, e)
					}
					t := &output.Table{}
					t.Row(eventCells(e)...)
					t.Rows[0][3] = fmt.Sprintf("%-12s", t.Rows[0][3])
					t.Write(a.Out)
					return nil
				}
				if follow && !s.Embedded {
					s.Leave()
					for e, err := range s.FollowEvents(ctx, args[0], after) {
						if err != nil {
							return err
						}
						if err := write(&e); err != nil {
							return err
						}
					}
					return nil
				}
				for {
					page, err := s.Events(ctx, args[0], after, 0)
					if err != nil {
						return err
					}
					for i := range page.Events {
						if err := write(&page.Events[i]); err != nil {
							return err
						}
						after = page.Events[i].Seq
					}
					if page.More && len(page.Events) > 0 {
						continue
					}
					if follow && !page.Status.Terminal() {
						app.SayIdle(a, args[0], page.Status)
					}
					return nil
				}
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "follow until the execution has ended")
	c.Flags().Int64Var(&after, "after", 0, "only events with a greater number")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON)
	c.Flags().Lookup("output").Usage = "table, or json: an event per line"
	return c
}
