package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/terminal"
)

// listing are the choices of `pawl get`.
type listing struct {
	format   format
	watch    bool
	interval time.Duration
	limit    int

	status   []string
	action   string
	workflow string
	labels   map[string]string
	tasks    bool
	since    string
	until    string
}

// kinds of things that can be listed, with the other names that people try.
var listKinds = []struct {
	name    string
	aliases []string
	list    func(*app, context.Context, *client.Client, *listing) (any, *table, error)
}{
	{"executions", []string{"execution", "ex", "runs"}, listExecutions},
	{"evaluations", []string{"evaluation", "evals", "eval"}, listEvaluations},
	{"actions", []string{"action", "workflows", "workflow", "definitions"}, listActions},
	{"queues", []string{"queue"}, listQueues},
	{"keys", []string{"key"}, listKeys},
	{"workers", []string{"worker"}, listWorkers},
}

func (a *app) getCommand() *cobra.Command {
	l := &listing{}
	var names []string
	for _, k := range listKinds {
		names = append(names, k.name)
	}
	c := &cobra.Command{
		Use:   "get " + strings.Join(names, "|"),
		Short: "List executions, actions, queues, keys or workers",
		Long: `List what there is. Executions come newest first; tasks of workflows are left out unless --tasks or --workflow asks
for them.`,
		Example: `  pawl get executions --status failed,timed_out --since 1h
  pawl get executions --label team=grading -o json
  pawl get executions --workflow ex_…          the tasks of one workflow
  pawl get executions -w                       keep the list up to date
  pawl get workers -o wide`,
		ValidArgs: names,
		Args:      cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, k := range listKinds {
				if k.name == args[0] || slices.Contains(k.aliases, args[0]) {
					return a.get(cmd.Context(), l, func(ctx context.Context, c *client.Client) (any, *table, error) {
						return k.list(a, ctx, c, l)
					})
				}
			}
			return usage("%q cannot be listed: one of %s", args[0], strings.Join(names, ", "))
		},
	}
	f := c.Flags()
	f.BoolVarP(&l.watch, "watch", "w", false, "show the list again whenever it changes")
	f.DurationVar(&l.interval, "interval", time.Second, "how often --watch looks")
	f.IntVar(&l.limit, "limit", 50, "how many at most")
	f.StringSliceVar(&l.status, "status", nil, "only executions with one of these statuses")
	f.StringVar(&l.action, "action", "", "only executions of this action or workflow")
	f.StringVar(&l.workflow, "workflow", "", "only the tasks of this workflow execution")
	f.StringToStringVar(&l.labels, "label", nil, "only executions with this label, as in team=grading")
	f.BoolVar(&l.tasks, "tasks", false, "tasks of workflows as well")
	f.StringVar(&l.since, "since", "", "only executions created since then: 90m, or a time as 2026-11-02T10:00:00Z")
	f.StringVar(&l.until, "until", "", "only executions created before then, as with --since")
	formatFlag(c, &l.format, asTable, asWide, asJSON, asYAML, asName)
	return c
}

// get lists once, or again and again.
func (a *app) get(ctx context.Context, l *listing, list func(context.Context, *client.Client) (any, *table, error)) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	s, err := a.connect(ctx, reading)
	if err != nil {
		return err
	}
	defer s.Close()
	last := ""
	for {
		data, t, err := list(ctx, s.Client)
		if err != nil {
			return err
		}
		var b strings.Builder
		switch l.format {
		case asJSON, asYAML:
			if err := writeData(&b, l.format, data); err != nil {
				return err
			}
		case asName:
			for _, r := range t.rows[1:] {
				fmt.Fprintln(&b, r[0])
			}
		default:
			t.write(&b)
		}
		if text := b.String(); text != last {
			if l.watch && last != "" && terminal.IsTerminal(a.out) {
				fmt.Fprint(a.out, "\x1b[H\x1b[2J")
			}
			fmt.Fprint(a.out, text)
			last = text
		}
		if !l.watch {
			return nil
		}
		if s.embedded {
			a.say("nothing is at work on %s, so nothing changes: watch while a pawl run or pawl server is", a.config.text("state_dir"))
			return nil
		}
		if err := waitFor(ctx, l.interval); err != nil {
			return err
		}
	}
}

// waitFor waits, or returns why ctx ended.
func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func (l *listing) filter() (client.Filter, error) {
	f := client.Filter{Action: l.action, Workflow: l.workflow, Labels: l.labels, TopLevel: !l.tasks && l.workflow == "", Limit: min(l.limit, 1000)}
	for _, s := range l.status {
		if !slices.Contains(api.Statuses(), api.Status(s)) {
			return f, usage("--status %q: one of %v", s, api.Statuses())
		}
		f.Status = append(f.Status, api.Status(s))
	}
	var err error
	if f.Since, err = moment("--since", l.since); err != nil {
		return f, err
	}
	f.Until, err = moment("--until", l.until)
	return f, err
}

// moment reads a time, or how long ago it was.
func moment(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := parseDuration(s); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, usage("%s %q: write a time as 2026-11-02T10:00:00Z, or how long ago as 90m or 2d", flag, s)
	}
	return t, nil
}

func collect(ctx context.Context, c *client.Client, l *listing, keep func(*api.Execution) bool) ([]api.Execution, error) {
	f, err := l.filter()
	if err != nil {
		return nil, err
	}
	all := []api.Execution{}
	for x, err := range c.All(ctx, f) {
		if err != nil {
			return nil, err
		}
		if keep(&x) {
			all = append(all, x)
		}
		if len(all) >= l.limit {
			break
		}
	}
	return all, nil
}

func listExecutions(_ *app, ctx context.Context, c *client.Client, l *listing) (any, *table, error) {
	all, err := collect(ctx, c, l, func(*api.Execution) bool { return true })
	return all, executionTable(all, l.format == asWide), err
}

func listEvaluations(_ *app, ctx context.Context, c *client.Client, l *listing) (any, *table, error) {
	all, err := collect(ctx, c, l, func(x *api.Execution) bool { return x.Kind == "code" && x.Version == 0 })
	return all, executionTable(all, l.format == asWide), err
}

func executionTable(all []api.Execution, wide bool) *table {
	t := &table{}
	head := []string{"ID", "ACTION", "STATUS", "ATTEMPT", "CREATED", "TOOK"}
	if wide {
		head = append(head, "KIND", "QUEUE", "KEY", "WORKER", "TASK", "LABELS")
	}
	t.row(head...)
	for i := range all {
		x := &all[i]
		cells := []string{x.ID, x.Action, string(x.Status), strconv.Itoa(x.Attempt), ago(x.CreatedAt), took(x)}
		if wide {
			task := x.Task
			if task != "" {
				task = fmt.Sprintf("%s[%d]", x.Task, x.Index)
			}
			cells = append(cells, x.Kind, x.Queue, x.Key, x.Worker, task, flow.LabelText(x.Labels))
		}
		t.row(cells...)
	}
	return t
}

func listActions(_ *app, ctx context.Context, c *client.Client, l *listing) (any, *table, error) {
	all := []api.Definition{}
	t := &table{}
	t.row("NAME", "VERSION", "KIND", "CREATED")
	for d, err := range c.Definitions(ctx) {
		if err != nil {
			return nil, nil, err
		}
		all = append(all, d)
		t.row(d.Name, strconv.Itoa(d.Version), d.Kind, ago(d.CreatedAt))
		if len(all) >= l.limit {
			break
		}
	}
	return all, t, nil
}

func listQueues(_ *app, ctx context.Context, c *client.Client, _ *listing) (any, *table, error) {
	all, err := c.Queues(ctx)
	all = append([]api.Queue{}, all...) // in JSON an empty list, not null
	t := &table{}
	t.row("QUEUE", "READY", "OLDEST", "WORKERS", "SLOTS")
	for _, q := range all {
		name := q.Queue
		if needs := slices.DeleteFunc([]string{q.Runtime, flow.LabelText(q.WorkerLabels)}, func(s string) bool { return s == "" }); len(needs) > 0 {
			name += " (" + strings.Join(needs, ",") + ")"
		}
		t.row(name, strconv.Itoa(q.Ready), ago(q.Oldest), strconv.Itoa(q.Workers), strconv.Itoa(q.Slots))
	}
	return all, t, err
}

func listKeys(_ *app, ctx context.Context, c *client.Client, _ *listing) (any, *table, error) {
	all, err := c.Keys(ctx)
	all = append([]api.Key{}, all...) // in JSON an empty list, not null
	t := &table{}
	t.row("KEY", "HOLDERS", "WAITING")
	for _, k := range all {
		t.row(k.Key, strconv.Itoa(k.Holders), strconv.Itoa(k.Waiting))
	}
	return all, t, err
}

func listWorkers(_ *app, ctx context.Context, c *client.Client, l *listing) (any, *table, error) {
	all, err := c.Workers(ctx)
	all = append([]api.Worker{}, all...) // in JSON an empty list, not null
	t := &table{}
	head := []string{"SESSION", "NAME", "QUEUES", "LABELS", "SLOTS", "STARTED"}
	if l.format == asWide {
		head = append(head, "KINDS", "LEASE UNTIL")
	}
	t.row(head...)
	for _, w := range all {
		cells := []string{w.Session, w.Name, strings.Join(w.Queues, ","), flow.LabelText(w.Labels), strconv.Itoa(w.Slots), ago(w.StartedAt)}
		if l.format == asWide {
			kinds := strings.Join(w.Kinds, ",")
			if kinds == "" {
				kinds = "all"
			}
			cells = append(cells, kinds, w.ExpiresAt.Local().Format(time.TimeOnly))
		}
		t.row(cells...)
	}
	return all, t, err
}
