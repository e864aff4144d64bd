// Package observe contains the commands that show executions and other data of an engine: get, describe, why, logs, events, files,
// wait, export and import.
package observe

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/automate"
	"github.com/pawl-run/pawl/internal/cli/define"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/terminal"
)

// versions is the only kind whose list needs a name: the definition's.
const versions = "versions"

// ofExecutions are the flags for lists of executions.
var ofExecutions = []string{"status", "action", "workflow", "rerun-of", "retry-of", "label", "verdict", "since", "where", "until", "id",
	"prefix", "after", "outputs", "tasks", "digest", "cases"}

// listKinds are the kinds that can be listed, with other names that users try, and the flags that not all kinds have.
var listKinds = []struct {
	name    string
	aliases []string
	list    func(context.Context, *app.App, *client.Client, *listing.Options) (any, *output.Table, error)
	flags   []string
}{
	{"executions", []string{"execution", "ex", "runs"}, listExecutions, ofExecutions},
	{"evaluations", []string{"evaluation", "evals", "eval"}, listEvaluations, ofExecutions},
	{"actions", []string{"action", "workflows", "workflow", "definitions"}, define.ListActions, nil},
	{versions, []string{"version"}, define.ListVersions, nil},
	{"queues", []string{"queue"}, listQueues, nil},
	{"keys", []string{"key"}, listKeys, nil},
	{"workers", []string{"worker"}, listWorkers, []string{"lost"}},
	{"line", []string{"lines"}, listLine, []string{"queue", "key", "label"}},
	{"schedules", []string{"schedule"}, automate.ListSchedules, nil},
	{"signals", []string{"signal"}, automate.ListSignals, []string{"trigger", "subject", "source", "since"}},
	{"webhooks", []string{"webhook", "hooks", "hook"}, automate.ListWebhooks, nil},
	{"inquiries", []string{"inquiry", "questions"}, automate.ListInquiries, []string{"state", "assignee"}},
	{"rules", []string{"rule"}, automate.ListRules, nil},
	{"enforcements", []string{"enforcement"}, automate.ListEnforcements, []string{"rule", "signal", "state"}},
	{"activity", nil, listActivity, nil},
	{"pauses", []string{"pause", "paused"}, define.ListPauses, []string{"history"}},
}

func GetCommand(a *app.App) *cobra.Command {
	l := &listing.Options{}
	var names []string
	for _, k := range listKinds {
		names = append(names, k.name)
	}
	c := &cobra.Command{
		Use:   "get " + strings.Join(names, "|") + " [NAME]",
		Short: "List executions, evaluations, actions, versions, queues, keys, workers, lines, schedules, signals, rules and more",
		Long: `List objects of one kind. Executions come newest first; tasks of workflows are included only with --tasks or
--workflow.`,
		Example: `  pawl get executions --status failed,timed_out --since 1h
  pawl get executions --label team=grading -o json
  pawl get executions --where 'label.team in (docs, web) and status = failed and created > -7d'
  pawl get evaluations --label run=17 --verdict timeout,oom
  pawl get evaluations --label run=17 --cases  which cases did not pass
  pawl get executions --workflow ex_…          the tasks of one workflow
  pawl get executions --prefix ex_01kb         by the beginning of their ids
  pawl get executions --after ex_…             what is newer, the oldest first
  pawl get executions -w                       keep the list up to date
  pawl get versions grade                      when each was registered, and its aliases; pawl diff shows what changed
  pawl get activity --limit 60                 what the server has done, minute by minute
  pawl get line --key deploy                   who holds the key, and who waits for it, in order
  pawl get line --queue default --label user=ann
  pawl get workers -o wide                     with what each runs`,
		ValidArgs: names,
		Args:      cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := listing.CheckLimit(l.Limit); err != nil {
				return err
			}
			for _, k := range listKinds {
				if k.name == args[0] || slices.Contains(k.aliases, args[0]) {
					switch named := len(args) == 2; {
					case named && k.name != versions:
						return exit.Usagef("pawl get %s lists all of them: leave %q out", k.name, args[1])
					case named:
						l.VersionsOf = args[1]
					case k.name == versions:
						return exit.Usagef("versions of which action or workflow? Give its name: pawl get versions NAME")
					}
					if err := suits(cmd.Flags(), k.name, k.flags); err != nil {
						return err
					}
					l.Hinted = k.name == "executions" || k.name == "evaluations"
					return get(cmd.Context(), a, l, func(ctx context.Context, c *client.Client) (any, *output.Table, error) {
						return k.list(ctx, a, c, l)
					})
				}
			}
			return exit.Usagef("%q cannot be listed: one of %s", args[0], strings.Join(names, ", "))
		},
	}
	f := c.Flags()
	f.BoolVarP(&l.Watch, "watch", "w", false, "keep the list on screen and refresh it whenever it changes, running executions first")
	l.Interval = time.Second
	app.DurationVar(f, &l.Interval, "interval", "refresh interval of --watch; for executions and evaluations the shortest one")
	f.IntVar(&l.Limit, "limit", 50, "largest number of rows")
	l.Flags(f)
	f.StringSliceVar(&l.IDs, "id", nil, "only these executions, including tasks; at most 200")
	f.StringVar(&l.Prefix, "prefix", "", "only executions, including tasks, whose ID begins like this, for example ex_01kb")
	f.StringVar(&l.After, "after", "", "only executions newer than the one with this ID, oldest first")
	f.BoolVar(&l.Outputs, "outputs", false, "with -o json or yaml: include the outputs")
	f.BoolVar(&l.Digest, "digest", false,
		"evaluations: one letter per case: P passed, W wrong answer, T timeout, M out of memory, X exit code, N not "+
			"run (docs/api.md has all)")
	f.BoolVar(&l.Cases, "cases", false, "evaluations: how many cases passed and which failed; with -o json or yaml the verdict of each")
	f.BoolVar(&l.Tasks, "tasks", false, "include tasks of workflows")
	f.StringVar(&l.Trigger, "trigger", "", "only signals of this trigger")
	f.StringVar(&l.Subject, "subject", "", "only signals with this subject")
	f.StringVar(&l.Source, "source", "", "only signals from this source, for example api")
	f.StringVar(&l.State, "state", "",
		"inquiries: open (the default), answered, expired, withdrawn or all; enforcements: ran, held, folded, refused or failed")
	f.StringVar(&l.Assignee, "assignee", "", "only open inquiries assigned to this person or group:NAME")
	f.BoolVar(&l.History, "history", false, "pauses: the history of pauses and resumes, newest first")
	f.StringVar(&l.Queue, "queue", "", "lines: executions waiting in this queue")
	f.StringVar(&l.Key, "key", "", "lines: executions that hold this concurrency key or wait for it")
	f.BoolVar(&l.Lost, "lost", false, "workers: those lost within the last day, newest first")
	f.StringVar(&l.Rule, "rule", "", "only enforcements of this rule")
	f.StringVar(&l.Signal, "signal", "", "only enforcements of this signal")
	output.FormatFlag(c, &l.Format, output.AsTable, output.AsWide, output.AsJSON, output.AsYAML, output.AsName)
	return c
}

// suits refuses flags that are for lists of other kinds: pawl get executions --queue gpu would list the executions of all queues.
func suits(flags *pflag.FlagSet, kind string, its []string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		var others []string
		for _, k := range listKinds {
			if slices.Contains(k.flags, f.Name) {
				others = append(others, k.name)
			}
		}
		if len(others) > 0 && !slices.Contains(its, f.Name) {
			err = exit.Usagef("--%s is not for %s, but for %s: leave it out", f.Name, kind, strings.Join(others, ", "))
		}
	})
	return err
}

// get lists once, or repeatedly.
func get(ctx context.Context, a *app.App, l *listing.Options, list func(context.Context, *client.Client) (any, *output.Table, error)) error {
	return a.WithClient(ctx, app.Reading, func(ctx context.Context, s *app.Session) error { return getWith(ctx, a, s, l, list) })
}

func getWith(ctx context.Context, a *app.App, s *app.Session, l *listing.Options, list func(context.Context, *client.Client) (any, *output.Table, error)) error {
	if l.Watch {
		s.Leave()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hints := make(chan struct{}, 1)
	if l.Watch && l.Hinted && !s.Embedded {
		go hint(ctx, s.Client, hints)
	} else {
		close(hints)
	}
	last := ""
	for {
		data, t, err := list(ctx, s.Client)
		if err != nil {
			return err
		}
		var b strings.Builder
		switch l.Format {
		case output.AsJSON, output.AsYAML:
			if err := output.WriteData(&b, l.Format, data); err != nil {
				return err
			}
		case output.AsName:
			for _, r := range t.Rows[1:] {
				fmt.Fprintln(&b, r[0])
			}
		default:
			t.Write(&b)
		}
		if text := b.String(); text != last {
			if l.Watch && last != "" && terminal.IsTerminal(a.Out) {
				fmt.Fprint(a.Out, "\x1b[H\x1b[2J")
			}
			if l.Watch && (l.Format == output.AsTable || l.Format == output.AsWide) {
				if last != "" && !terminal.IsTerminal(a.Out) {
					fmt.Fprintln(a.Out)
				}
				fmt.Fprintln(a.Out, time.Now().Format("15:04:05"))
			}
			fmt.Fprint(a.Out, text)
			last = text
		}
		if !l.Watch {
			return nil
		}
		if s.Embedded {
			a.Say("nothing is at work on %s, so nothing changes: watch while a pawl run or pawl server is", a.Config.Text("state_dir"))
			return nil
		}
		if err := instance.WaitFor(ctx, l.Interval); err != nil {
			return err
		}
		select {
		case <-hints:
		case <-time.After(unhinted):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unhinted is how long a watched list waits for a hint: the server sends one at least every 5 s, unless a proxy delays the stream.
const unhinted = 10 * time.Second

// hint puts a value into hints, which has a capacity of one, whenever executions may have changed. It closes hints
// when the stream of changes has ended: from then on the list is read at every interval.
func hint(ctx context.Context, c *client.Client, hints chan<- struct{}) {
	defer close(hints)
	for _, err := range c.FollowChanges(ctx) {
		if err != nil {
			return
		}
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}

func listExecutions(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	f, err := l.Filter()
	if err != nil {
		return nil, nil, err
	}
	all, err := l.Pick(f, func(f client.Filter) iter.Seq2[api.Execution, error] { return c.All(ctx, f) })
	return all, executionTable(all, l.Format), err
}

func listEvaluations(ctx context.Context, a *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	f, err := l.Filter()
	if err != nil {
		return nil, nil, err
	}
	if l.Action != "" || l.Workflow != "" || l.RerunOf != "" || l.RetryOf != "" || l.Tasks {
		return nil, nil, exit.Usagef("evaluations have no action and are no tasks: leave out --action, --workflow, --rerun-of, --retry-of and --tasks, or list executions")
	}
	f.TopLevel = false // they all are
	all, err := l.Pick(f, func(f client.Filter) iter.Seq2[api.Execution, error] { return c.AllEvaluations(ctx, f) })
	if err == nil && len(all) == 0 && len(l.Verdicts) > 0 && len(l.Labels) > 0 && !l.Watch {
		sayVerdicts(ctx, a, c, l)
	}
	return all, evaluationTable(all, l), err
}

func evaluationTable(all []api.Execution, l *listing.Options) *output.Table {
	t := &output.Table{}
	wide := l.Format == output.AsWide
	head := []string{"ID", "STATUS", "VERDICT", "EXIT", "CPU", "WALL", "MEMORY", "CREATED"}
	if l.Cases {
		head = append(head, "CASES", "NOT PASSED")
	}
	if l.Digest {
		head = append(head, "DIGEST")
	}
	if wide {
		head = append(head, "ATTEMPT", "QUEUE", "WORKER", "LABELS", "ERROR")
	}
	t.Row(head...)
	for i := range all {
		x := &all[i]
		code := ""
		if x.ExitCode != nil {
			code = strconv.Itoa(*x.ExitCode)
		}
		cells := []string{x.ID, statusText(x), x.Verdict, code, output.Millis(x.CPUMS), output.Millis(x.WallMS), output.Memory(x), output.Ago(x.CreatedAt)}
		if l.Cases {
			passed, rest := casesText(x, wide)
			cells = append(cells, passed, rest)
		}
		if l.Digest {
			digest := ""
			if x.Digest != nil {
				digest = x.Digest.Cells
			}
			cells = append(cells, digest)
		}
		if wide {
			message := ""
			if x.Error != nil {
				message, _, _ = strings.Cut(x.Error.Message, "\n")
			}
			cells = append(cells, strconv.Itoa(x.Attempt), x.Queue, x.Worker, flow.LabelText(x.Labels), message)
		}
		t.Row(cells...)
	}
	return t
}

// statusText is the status, with the start time of an execution that was submitted for later, whether it is paused, and
// what a running execution without a worker waits for.
func statusText(x *api.Execution) string {
	if x.Status == api.Requested && x.Attempt == 1 && x.NotBefore.After(time.Now()) {
		return string(x.Status) + ", starts " + output.When(&x.NotBefore)
	}
	if o := x.CancelOrder; o != nil && !o.CleanupUntil.IsZero() {
		return string(x.Status) + ", cleaning up until " + output.When(&o.CleanupUntil)
	}
	if x.Paused != nil {
		return string(x.Status) + ", paused"
	}
	if x.Inquiry != "" {
		return string(x.Status) + ", needs an answer"
	}
	switch x.Waiting {
	case "signal":
		return string(x.Status) + ", awaits a signal"
	case "sleep":
		return string(x.Status) + ", sleeping"
	}
	return string(x.Status)
}

// casesText says how many cases passed, and how the others ended: the first three of these, or all.
func casesText(x *api.Execution, all bool) (passed, rest string) {
	if x.Summary == nil {
		return "", ""
	}
	var others []string
	for _, c := range x.CaseVerdicts {
		if c.Verdict != api.VerdictOK {
			others = append(others, c.Name+": "+c.Verdict)
		}
	}
	const shown = 3
	if more := len(others) - shown; more > 0 && !all {
		others = append(others[:shown], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of %d", x.Summary.Passed, x.Summary.Total), strings.Join(others, ", ")
}

func executionTable(all []api.Execution, f output.Format) *output.Table {
	t := output.Listing(f, 7, "ID", "ACTION", "STATUS", "ATTEMPT", "CREATED", "TOOK", "ERROR", "KIND", "QUEUE", "KEY", "WORKER", "TASK", "LABELS")
	for i := range all {
		x := &all[i]
		code, task := "", ""
		if x.Error != nil {
			code = x.Error.Code
		}
		if x.Task != "" {
			task = fmt.Sprintf("%s[%d]", x.Task, x.Index)
		}
		t.Row(x.ID, x.Action, statusText(x), strconv.Itoa(x.Attempt), output.Ago(x.CreatedAt), output.Took(x), code,
			x.Kind, x.Queue, x.Key, x.Worker, task, flow.LabelText(x.Labels))
	}
	return t
}

func listQueues(ctx context.Context, _ *app.App, c *client.Client, _ *listing.Options) (any, *output.Table, error) {
	all, err := c.Queues(ctx)
	t := output.Titled("QUEUE", "READY", "OLDEST", "WORKERS", "SLOTS", "STATE")
	for _, q := range all {
		name := q.Queue
		if needs := slices.DeleteFunc([]string{handlerText(q.Handler), q.Runtime, flow.LabelText(q.WorkerLabels)}, func(s string) bool { return s == "" }); len(needs) > 0 {
			name += " (" + strings.Join(needs, ",") + ")"
		}
		t.Row(name, strconv.Itoa(q.Ready), output.Ago(q.Oldest), strconv.Itoa(q.Workers), strconv.Itoa(q.Slots), output.Pause(q.Paused))
	}
	return all, t, err
}

// handlerText names the handler of a part of a queue.
func handlerText(name string) string {
	if name == "" {
		return ""
	}
	return "handler " + name
}

func listKeys(ctx context.Context, _ *app.App, c *client.Client, _ *listing.Options) (any, *output.Table, error) {
	all, err := c.Keys(ctx)
	t := output.Titled("KEY", "HOLDERS", "WAITING")
	for _, k := range all {
		t.Row(k.Key, strconv.Itoa(k.Holders), strconv.Itoa(k.Waiting))
	}
	return all, t, err
}

// sayVerdicts lists the verdicts of the executions with the labels if none has a requested verdict, which may be mistyped.
func sayVerdicts(ctx context.Context, a *app.App, c *client.Client, l *listing.Options) {
	n, err := c.Count(ctx, client.Filter{Labels: l.Labels, TopLevel: true})
	if err != nil || n.Total == 0 {
		return
	}
	var there []string
	for _, v := range slices.Sorted(maps.Keys(n.Verdicts)) {
		there = append(there, fmt.Sprintf("%d %s", n.Verdicts[v], v))
	}
	if n.Unfinished > 0 {
		there = append(there, fmt.Sprintf("%d unfinished", n.Unfinished))
	}
	a.Say("pawl: none has the verdict %s; with the label there are %s", strings.Join(l.Verdicts, ","), strings.Join(there, ", "))
}
