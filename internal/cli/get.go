package cli

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
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/terminal"
)

// listing are the choices of `pawl get`.
type listing struct {
	format   output.Format
	watch    bool
	hinted   bool // the server says when the list may have changed
	interval time.Duration
	limit    int

	status   []string
	action   string
	workflow string
	rerunOf  string
	labels   map[string]string
	verdicts []string
	outputs  bool
	cases    bool
	tasks    bool
	since    string
	until    string
	where    string

	trigger, subject, source string // of signals
	state, assignee          string // of inquiries; state of enforcements, too
	rule, signal             string // of enforcements
	versionsOf               string // of actions
	history                  bool   // of pauses
}

// kinds of things that can be listed, with the other names that people try.
var listKinds = []struct {
	name    string
	aliases []string
	list    func(*app, context.Context, *client.Client, *listing) (any, *output.Table, error)
}{
	{"executions", []string{"execution", "ex", "runs"}, listExecutions},
	{"evaluations", []string{"evaluation", "evals", "eval"}, listEvaluations},
	{"actions", []string{"action", "workflows", "workflow", "definitions"}, listActions},
	{"queues", []string{"queue"}, listQueues},
	{"keys", []string{"key"}, listKeys},
	{"workers", []string{"worker"}, listWorkers},
	{"schedules", []string{"schedule"}, listSchedules},
	{"signals", []string{"signal"}, listSignals},
	{"webhooks", []string{"webhook", "hooks", "hook"}, listWebhooks},
	{"inquiries", []string{"inquiry", "questions"}, listInquiries},
	{"rules", []string{"rule"}, listRules},
	{"enforcements", []string{"enforcement"}, listEnforcements},
	{"activity", nil, listActivity},
	{"pauses", []string{"pause", "paused"}, listPauses},
}

func (a *app) getCommand() *cobra.Command {
	l := &listing{}
	var names []string
	for _, k := range listKinds {
		names = append(names, k.name)
	}
	c := &cobra.Command{
		Use:   "get " + strings.Join(names, "|"),
		Short: "List executions, evaluations, actions, queues, keys, workers, schedules, signals, rules, enforcements, inquiries, webhooks, pauses, or what the server has done lately",
		Long: `List what there is. Executions come newest first; tasks of workflows are left out unless --tasks or --workflow asks
for them.`,
		Example: `  pawl get executions --status failed,timed_out --since 1h
  pawl get executions --label team=grading -o json
  pawl get executions --where 'label.team in (docs, web) and status = failed and created > -7d'
  pawl get evaluations --label run=17 --verdict timeout,oom
  pawl get evaluations --label run=17 --cases  which cases did not pass
  pawl get executions --workflow ex_…          the tasks of one workflow
  pawl get executions -w                       keep the list up to date
  pawl get actions --versions-of grade         when each was registered; pawl diff shows what changed
  pawl get activity --limit 60                 what the server has done, minute by minute
  pawl get workers -o wide`,
		ValidArgs: names,
		Args:      cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, k := range listKinds {
				if k.name == args[0] || slices.Contains(k.aliases, args[0]) {
					l.hinted = k.name == "executions" || k.name == "evaluations"
					return a.get(cmd.Context(), l, func(ctx context.Context, c *client.Client) (any, *output.Table, error) {
						return k.list(a, ctx, c, l)
					})
				}
			}
			return exit.Usagef("%q cannot be listed: one of %s", args[0], strings.Join(names, ", "))
		},
	}
	f := c.Flags()
	f.BoolVarP(&l.watch, "watch", "w", false, "show the list again whenever it changes, with the time above it and what runs at its head")
	l.interval = time.Second
	durationVar(f, &l.interval, "interval", "how often --watch looks; of executions and evaluations: at most, when something may have changed")
	f.IntVar(&l.limit, "limit", 50, "how many at most")
	l.selectFlags(f)
	f.BoolVar(&l.outputs, "outputs", false, "with -o json or yaml: what each has put out as well")
	f.BoolVar(&l.cases, "cases", false, "of evaluations: how many cases passed, and which did not; with -o json or yaml how each ended")
	f.BoolVar(&l.tasks, "tasks", false, "tasks of workflows as well")
	f.StringVar(&l.trigger, "trigger", "", "only signals of this trigger")
	f.StringVar(&l.subject, "subject", "", "only signals about this")
	f.StringVar(&l.source, "source", "", "only signals from this source, as in api")
	f.StringVar(&l.state, "state", "", "only inquiries in this state: open (the default), answered, expired, withdrawn, or all of them; or only enforcements: ran, held, folded, refused, failed")
	f.StringVar(&l.assignee, "assignee", "", "only open inquiries for this person or group:NAME by name")
	f.StringVar(&l.versionsOf, "versions-of", "", "of actions: every version of this one, the newest first")
	f.BoolVar(&l.history, "history", false, "of pauses: everything that was paused and resumed, the latest first")
	f.StringVar(&l.rule, "rule", "", "only enforcements of this rule")
	f.StringVar(&l.signal, "signal", "", "only enforcements of this signal")
	output.FormatFlag(c, &l.format, output.AsTable, output.AsWide, output.AsJSON, output.AsYAML, output.AsName)
	return c
}

// selectFlags are those that select executions.
func (l *listing) selectFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&l.status, "status", nil, "only executions with one of these statuses")
	f.StringVar(&l.action, "action", "", "only executions of this action or workflow")
	f.StringVar(&l.workflow, "workflow", "", "only the tasks of this workflow execution")
	f.StringVar(&l.rerunOf, "rerun-of", "", "only the reruns of this execution")
	f.StringToStringVar(&l.labels, "label", nil, "only executions with this label, as in team=grading")
	f.StringSliceVar(&l.verdicts, "verdict", nil, "only what ended with one of these: ok, or the code of an error, such as timeout")
	f.StringVar(&l.since, "since", "", "only what was created, or of signals accepted, since then: 90m, or a time as 2026-11-02T10:00:00Z")
	f.StringVar(&l.where, "where", "", "only executions that meet this condition, as in 'label.team = docs and status = failed and created > -7d'")
	f.StringVar(&l.until, "until", "", "only executions created before then, as with --since")
}

// get lists once, or again and again.
func (a *app) get(ctx context.Context, l *listing, list func(context.Context, *client.Client) (any, *output.Table, error)) error {
	return a.withClient(ctx, reading, func(ctx context.Context, s *session) error { return a.getWith(ctx, s, l, list) })
}

func (a *app) getWith(ctx context.Context, s *session, l *listing, list func(context.Context, *client.Client) (any, *output.Table, error)) error {
	if l.watch {
		s.leave()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hints := make(chan struct{}, 1)
	if l.watch && l.hinted && !s.embedded {
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
		switch l.format {
		case output.AsJSON, output.AsYAML:
			if err := output.WriteData(&b, l.format, data); err != nil {
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
			if l.watch && last != "" && terminal.IsTerminal(a.out) {
				fmt.Fprint(a.out, "\x1b[H\x1b[2J")
			}
			if l.watch && (l.format == output.AsTable || l.format == output.AsWide) {
				if last != "" && !terminal.IsTerminal(a.out) {
					fmt.Fprintln(a.out)
				}
				fmt.Fprintln(a.out, time.Now().Format("15:04:05"))
			}
			fmt.Fprint(a.out, text)
			last = text
		}
		if !l.watch {
			return nil
		}
		if s.embedded {
			a.say("nothing is at work on %s, so nothing changes: watch while a pawl run or pawl server is", a.config.Text("state_dir"))
			return nil
		}
		if err := instance.WaitFor(ctx, l.interval); err != nil {
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

// unhinted is how long a watched list goes without a hint: the server sends one at least every 5 s, unless a proxy holds the stream back.
const unhinted = 10 * time.Second

// hint puts a value into hints, which has room for one, whenever executions may have changed. It closes hints when it cannot say any more.
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

func (l *listing) filter() (client.Filter, error) {
	if l.limit < 1 {
		return client.Filter{}, exit.Usagef("--limit %d: give a number of 1 or more", l.limit)
	}
	f := client.Filter{Action: l.action, Workflow: l.workflow, RerunOf: l.rerunOf, Labels: l.labels, Verdicts: l.verdicts, Where: l.where, Outputs: l.outputs, Cases: l.cases, TopLevel: !l.tasks && l.workflow == "", Limit: min(l.limit, 1000)}
	for _, s := range l.status {
		if !slices.Contains(api.Statuses(), api.Status(s)) {
			return f, exit.Usagef("--status %q: one of %s", s, strings.Trim(strings.ReplaceAll(fmt.Sprint(api.Statuses()), " ", ", "), "[]"))
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
	if d, err := duration.Parse(s); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, exit.Usagef("%s %q: write a time as 2026-11-02T10:00:00Z, or how long ago as 90m or 2d", flag, s)
	}
	return t, nil
}

// pick lists as many as are to be listed. A list that is watched begins with what runs: under load the newest are all waiting.
func (l *listing) pick(f client.Filter, walk func(client.Filter) iter.Seq2[api.Execution, error]) ([]api.Execution, error) {
	if !l.watch || len(f.Status) > 0 {
		return l.firstOf(walk(f))
	}
	active := f
	active.Status = []api.Status{api.Running, api.Provisioning}
	all, err := l.firstOf(walk(active))
	if err != nil {
		return nil, err
	}
	newest, err := l.firstOf(walk(f))
	if err != nil {
		return nil, err
	}
	shown := map[string]bool{}
	for _, x := range all {
		shown[x.ID] = true
	}
	for _, x := range newest {
		if !shown[x.ID] && len(all) < l.limit {
			all = append(all, x)
		}
	}
	return all, nil
}

// firstOf are the first of a walk, as many as are to be listed.
func (l *listing) firstOf(walk iter.Seq2[api.Execution, error]) ([]api.Execution, error) {
	all := []api.Execution{}
	for x, err := range walk {
		if err != nil {
			return nil, err
		}
		if all = append(all, x); len(all) >= l.limit {
			break
		}
	}
	return all, nil
}

func listExecutions(_ *app, ctx context.Context, c *client.Client, l *listing) (any, *output.Table, error) {
	f, err := l.filter()
	if err != nil {
		return nil, nil, err
	}
	all, err := l.pick(f, func(f client.Filter) iter.Seq2[api.Execution, error] { return c.All(ctx, f) })
	return all, executionTable(all, l.format == output.AsWide), err
}

func listEvaluations(a *app, ctx context.Context, c *client.Client, l *listing) (any, *output.Table, error) {
	f, err := l.filter()
	if err != nil {
		return nil, nil, err
	}
	if l.action != "" || l.workflow != "" || l.rerunOf != "" || l.tasks {
		return nil, nil, exit.Usagef("evaluations have no action and are no tasks: leave out --action, --workflow, --rerun-of and --tasks, or list executions")
	}
	f.TopLevel = false // they all are
	all, err := l.pick(f, func(f client.Filter) iter.Seq2[api.Execution, error] { return c.AllEvaluations(ctx, f) })
	if err == nil && len(all) == 0 && len(l.verdicts) > 0 && len(l.labels) > 0 && !l.watch {
		a.sayVerdicts(ctx, c, l)
	}
	return all, evaluationTable(all, l), err
}

func evaluationTable(all []api.Execution, l *listing) *output.Table {
	t := &output.Table{}
	wide := l.format == output.AsWide
	head := []string{"ID", "STATUS", "VERDICT", "EXIT", "CPU", "WALL", "MEMORY", "CREATED"}
	if l.cases {
		head = append(head, "CASES", "NOT PASSED")
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
		cells := []string{x.ID, statusText(x), x.Verdict, code, millis(x.CPUMS), millis(x.WallMS), memoryText(x), output.Ago(x.CreatedAt)}
		if l.cases {
			passed, rest := casesText(x, wide)
			cells = append(cells, passed, rest)
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

// statusText is the status, with the time for which what has not begun is submitted, and whether it is paused.
func statusText(x *api.Execution) string {
	if x.Status == api.Requested && x.Attempt == 1 && x.NotBefore.After(time.Now()) {
		return string(x.Status) + ", starts " + whenText(&x.NotBefore)
	}
	if x.Paused != nil {
		return string(x.Status) + ", paused"
	}
	return string(x.Status)
}

// casesText says how many cases passed, and how those ended that did not: the first three, or all of them.
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

func executionTable(all []api.Execution, wide bool) *output.Table {
	t := &output.Table{}
	head := []string{"ID", "ACTION", "STATUS", "ATTEMPT", "CREATED", "TOOK", "ERROR"}
	if wide {
		head = append(head, "KIND", "QUEUE", "KEY", "WORKER", "TASK", "LABELS")
	}
	t.Row(head...)
	for i := range all {
		x := &all[i]
		cells := []string{x.ID, x.Action, statusText(x), strconv.Itoa(x.Attempt), output.Ago(x.CreatedAt), output.Took(x), ""}
		if x.Error != nil {
			cells[len(cells)-1] = x.Error.Code
		}
		if wide {
			task := x.Task
			if task != "" {
				task = fmt.Sprintf("%s[%d]", x.Task, x.Index)
			}
			cells = append(cells, x.Kind, x.Queue, x.Key, x.Worker, task, flow.LabelText(x.Labels))
		}
		t.Row(cells...)
	}
	return t
}

func listQueues(_ *app, ctx context.Context, c *client.Client, _ *listing) (any, *output.Table, error) {
	all, err := c.Queues(ctx)
	all = append([]api.Queue{}, all...) // in JSON an empty list, not null
	t := &output.Table{}
	t.Row("QUEUE", "READY", "OLDEST", "WORKERS", "SLOTS", "STATE")
	for _, q := range all {
		name := q.Queue
		if needs := slices.DeleteFunc([]string{handlerText(q.Handler), q.Runtime, flow.LabelText(q.WorkerLabels)}, func(s string) bool { return s == "" }); len(needs) > 0 {
			name += " (" + strings.Join(needs, ",") + ")"
		}
		t.Row(name, strconv.Itoa(q.Ready), output.Ago(q.Oldest), strconv.Itoa(q.Workers), strconv.Itoa(q.Slots), pauseText(q.Paused))
	}
	return all, t, err
}

// handlerText names the handler that a part of a queue is for.
func handlerText(name string) string {
	if name == "" {
		return ""
	}
	return "handler " + name
}

func listKeys(_ *app, ctx context.Context, c *client.Client, _ *listing) (any, *output.Table, error) {
	all, err := c.Keys(ctx)
	all = append([]api.Key{}, all...) // in JSON an empty list, not null
	t := &output.Table{}
	t.Row("KEY", "HOLDERS", "WAITING")
	for _, k := range all {
		t.Row(k.Key, strconv.Itoa(k.Holders), strconv.Itoa(k.Waiting))
	}
	return all, t, err
}

func listWorkers(_ *app, ctx context.Context, c *client.Client, l *listing) (any, *output.Table, error) {
	all, err := c.Workers(ctx)
	all = append([]api.Worker{}, all...) // in JSON an empty list, not null
	t := &output.Table{}
	head := []string{"SESSION", "NAME", "QUEUES", "LABELS", "SLOTS", "STARTED", "STATE"}
	if l.format == output.AsWide {
		head = append(head, "KINDS", "LEASE UNTIL")
	}
	t.Row(head...)
	for _, w := range all {
		cells := []string{w.Session, w.Name, strings.Join(w.Queues, ","), flow.LabelText(w.Labels), strconv.Itoa(w.Slots), output.Ago(w.StartedAt), pauseText(w.Paused)}
		if l.format == output.AsWide {
			kinds := strings.Join(w.Kinds, ",")
			if kinds == "" {
				kinds = "built-in"
			}
			cells = append(cells, kinds, w.ExpiresAt.Local().Format(time.TimeOnly))
		}
		t.Row(cells...)
	}
	return all, t, err
}

// sayVerdicts says which verdicts there are with the labels when none is one of those that were asked for: they may be mistyped.
func (a *app) sayVerdicts(ctx context.Context, c *client.Client, l *listing) {
	n, err := c.Count(ctx, client.Filter{Labels: l.labels, TopLevel: true})
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
	a.say("pawl: none has the verdict %s; with the label there are %s", strings.Join(l.verdicts, ","), strings.Join(there, ", "))
}
