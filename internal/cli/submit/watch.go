package submit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/terminal"
)

const shownItems = 100

// Watch shows an execution until it has ended, prints its outcome, and returns the exit code as an error. On
// the first interruption it cancels the execution.
func Watch(ctx context.Context, a *app.App, s *app.Session, x *api.Execution, f output.Format) error {
	interrupts := app.Interruptions(ctx)
	follow, stop := s.Within(context.WithoutCancel(ctx))
	defer stop()
	view := terminal.Open(a.Err, interrupts.Press)
	defer view.Close()
	a.RedirectLog(view.Say)
	defer a.RedirectLog(nil)
	w := &watcher{client: s.Client, id: x.ID, view: view, waiting: newWaiting(view.Say), names: map[string]string{}, errors: map[string]string{}, logs: map[string]*tail{}}
	view.Say(fmt.Sprintf("execution %s of %s", x.ID, actionText(x)))
	view.Hint("Ctrl-C cancels it")
	done := make(chan error, 1)
	go func() { done <- a.Following(follow, s, func() error { w.client = s.Client; return w.run(follow) }) }()
	pressed := 0
	var err error
	for over := false; !over; {
		select {
		case err = <-done:
			over = true
		case <-interrupts.Pressed:
			if pressed++; pressed > 1 {
				view.Close()
				return app.ErrInterrupted
			}
			view.Say("pawl: cancelling, and waiting until nothing is left running; Ctrl-C again kills at once")
			view.Hint("")
			go func() {
				if _, err := s.Cancel(follow, x.ID, "interrupted", 0); err != nil && !client.IsFinished(err) {
					view.Say("pawl: cancel: " + err.Error())
				}
			}()
		}
	}
	view.Close()
	if err != nil {
		return fmt.Errorf("watch %s: %w", x.ID, err)
	}
	end, err := s.Get(follow, x.ID)
	if err != nil {
		return err
	}
	code, err := outcome(a, end, f)
	if pressed > 0 {
		code = exit.Interrupted
	}
	if err != nil || code == exit.OK {
		return err
	}
	return &exit.Error{Code: code}
}

func actionText(x *api.Execution) string {
	switch {
	case x.Alias != "":
		return fmt.Sprintf("%s@%d (%s)", x.Action, x.Version, x.Alias)
	case x.Version > 0:
		return fmt.Sprintf("%s@%d", x.Action, x.Version)
	}
	return x.Action
}

// outcome prints how an execution ended and returns the exit code for it.
func outcome(a *app.App, x *api.Execution, f output.Format) (int, error) {
	code := exit.CodeOf(x.Status)
	if f == output.AsJSON || f == output.AsYAML {
		return code, output.WriteData(a.Out, f, x)
	}
	if err := output.WriteResult(a.Out, x.Output); err != nil {
		return code, err
	}
	if x.Error != nil {
		a.Say("pawl: %s %s: %s", actionText(x), x.Status, terminal.Clean(x.Error.Error()))
	} else if x.Status != api.Completed {
		a.Say("pawl: %s %s", actionText(x), x.Status)
	}
	if x.Status != api.Completed {
		a.Say("pawl describe %s shows everything about it", x.ID)
	}
	return code, nil
}

// watcher turns an execution's states into snapshots for a view.
type watcher struct {
	client  *client.Client
	id      string
	view    terminal.View
	waiting *waiting
	awaited awaited
	names   map[string]string // description of an item, by execution
	errors  map[string]string // reason of an item's failure, by execution
	logs    map[string]*tail
}

// tail is the last line of an execution's log, as far as it was read.
type tail struct {
	after string
	line  string
	over  bool // nothing more will come
}

// run shows snapshots until the execution has ended.
func (w *watcher) run(ctx context.Context) error {
	x, err := w.client.Get(ctx, w.id)
	if err != nil {
		return err
	}
	if x.Kind != "workflow" {
		return w.single(ctx)
	}
	changes := make(chan api.Tasks)
	ended := make(chan error, 1)
	go func() {
		for t, err := range w.client.FollowTasks(ctx, w.id, shownItems) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case changes <- t:
			case <-ctx.Done():
				return
			}
		}
		ended <- nil
	}()
	logs := time.Tick(200 * time.Millisecond)
	var last api.Tasks
	for {
		select {
		case last = <-changes:
		case err := <-ended:
			if err != nil {
				return err
			}
			return w.last(ctx)
		case <-logs:
		}
		if !last.Status.Terminal() { // the end is shown once all of it is known
			w.readTails(ctx, &last)
			w.show(ctx, x, &last)
			w.waiting.lookAtTasks(ctx, w.client, &last)
		}
	}
}

// last shows the final state of everything.
func (w *watcher) last(ctx context.Context) error {
	x, err := w.client.Get(ctx, w.id)
	if err != nil {
		return err
	}
	tasks, err := w.client.Tasks(ctx, w.id, shownItems)
	if err != nil {
		return err
	}
	w.readTails(ctx, tasks)
	w.show(ctx, x, tasks)
	return nil
}

// single watches an execution that is not a workflow.
func (w *watcher) single(ctx context.Context) error {
	for {
		x, err := w.client.Get(ctx, w.id)
		if err != nil {
			return err
		}
		t := terminal.Tree{Node: executionNode(actionText(x), x)}
		if !x.Status.Terminal() {
			w.awaited.show(ctx, w.client, &t.Node, x.ID, x.Kind, x.Status)
			t.Log = w.readTail(ctx, x.ID)
			w.waiting.look(ctx, w.client, x.ID, actionText(x), x.Status, x.WakeAt)
		}
		w.view.Show(t)
		if x.Status.Terminal() {
			return nil
		}
		if err := instance.WaitFor(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func executionNode(name string, x *api.Execution) terminal.Node {
	n := terminal.Node{Name: name, Status: string(x.Status), Attempt: x.Attempt, Started: x.StartedAt, Finished: x.FinishedAt,
		Since: since(x.Status, x.Attempt, x.CreatedAt, x.ClaimedAt, x.StartedAt, x.FinishedAt)}
	if x.Error != nil {
		n.Error = x.Error.Error()
	}
	n.Note = waitNote(x.Attempt, x.WakeAt, x.Key)
	return n
}

// since is the time of an execution's last change of status; zero if its times do not show it.
func since(s api.Status, attempt int, created, claimed, started, finished time.Time) time.Time {
	switch {
	case s.Terminal():
		return finished
	case s == api.Running && attempt > 1:
		return claimed // approximately: started is that of the first attempt
	case s == api.Running:
		return started
	case s == api.Provisioning:
		return claimed
	case attempt > 1:
		return time.Time{}
	}
	return created
}

// waitNote says what an execution waits for, as far as its own row shows it.
func waitNote(attempt int, wake time.Time, key string) string {
	switch left := time.Until(wake); {
	case !wake.IsZero() && left > 0 && attempt > 1:
		return "again in " + terminal.Seconds(left)
	case !wake.IsZero() && left > 0:
		return "for another " + terminal.Seconds(left)
	case key != "":
		return "key " + key
	}
	return ""
}

func (w *watcher) show(ctx context.Context, x *api.Execution, tasks *api.Tasks) {
	tree := terminal.Tree{Node: executionNode(actionText(x), x)}
	if tasks.Status != "" {
		tree.Status = string(tasks.Status)
		tree.Since = since(tasks.Status, x.Attempt, x.CreatedAt, x.ClaimedAt, x.StartedAt, x.FinishedAt)
	}
	if tree.Started.IsZero() {
		tree.Started = x.CreatedAt
	}
	tree.Note = ""
	for i := range tasks.Tasks {
		tree.Children = append(tree.Children, w.taskNode(ctx, &tasks.Tasks[i]))
	}
	dateSkipped(&tree.Node, tasks.Tasks)
	w.view.Show(tree)
}

// dateSkipped gives skipped tasks the time of the decision, which is the latest end among the tasks that they need. Tasks without needs
// are decided when the workflow starts, and tasks of which a need never ended, when the workflow ends. tree has a child for each task,
// in their order.
func dateSkipped(tree *terminal.Node, tasks []api.Task) {
	at := make(map[string]time.Time, len(tasks))
	for i := range tasks {
		if !tasks[i].Status.Terminal() && tasks[i].Status != "skipped" {
			continue
		}
		at[tasks[i].Name] = tree.Children[i].Since
	}
	for range tasks { // the tasks of a chain get their time one after the other
		more := false
		for i := range tasks {
			if tasks[i].Status != "skipped" || !tree.Children[i].Since.IsZero() {
				continue
			}
			decided, open := tree.Started, false
			for _, need := range tasks[i].Needs {
				ended := at[need]
				if decided, open = later(decided, ended), open || ended.IsZero(); open {
					break
				}
			}
			if !open {
				tree.Children[i].Since, at[tasks[i].Name], more = decided, decided, true
			}
		}
		if !more {
			break
		}
	}
	for i := range tasks {
		if tasks[i].Status == "skipped" && tree.Children[i].Since.IsZero() {
			tree.Children[i].Since = tree.Finished
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (w *watcher) taskNode(ctx context.Context, t *api.Task) terminal.Node {
	n := terminal.Node{Name: t.Name, Status: string(t.Status), Started: t.StartedAt, Finished: t.FinishedAt,
		Since: cmp.Or(t.FinishedAt, t.StartedAt)}
	if t.Error != nil {
		n.Error = t.Error.Error()
	}
	if !t.Many() {
		if len(t.Executions) > 0 {
			x := t.Executions[0]
			n.Attempt, n.Note = x.Attempt, waitNote(x.Attempt, x.WakeAt, "")
			n.Since = since(x.Status, x.Attempt, x.CreatedAt, x.ClaimedAt, x.StartedAt, x.FinishedAt)
			n.Log = w.tailOf(x.ID)
			n.Error = cmp.Or(n.Error, w.failure(ctx, x))
			w.awaited.show(ctx, w.client, &n, x.ID, x.Kind, x.Status)
		}
		return n
	}
	n.Total, n.Ended, n.Rounds = cmp.Or(t.Most(), t.Created), t.Ended, t.Repeat > 0
	n.Failed = t.Counts[api.Failed] + t.Counts[api.TimedOut]
	for _, x := range t.Executions {
		item := terminal.Node{
			Name: fmt.Sprintf("[%d]%s", x.Index, w.about(ctx, x)), Status: string(x.Status), Attempt: x.Attempt,
			Started: x.StartedAt, Finished: x.FinishedAt, Note: waitNote(x.Attempt, x.WakeAt, ""), Log: w.tailOf(x.ID),
			Since: since(x.Status, x.Attempt, x.CreatedAt, x.ClaimedAt, x.StartedAt, x.FinishedAt), Error: w.failure(ctx, x),
		}
		w.awaited.show(ctx, w.client, &item, x.ID, x.Kind, x.Status)
		n.Children = append(n.Children, item)
	}
	return n
}

// about describes an item by its input: users know their items by name and not by number.
func (w *watcher) about(ctx context.Context, x api.TaskExecution) string {
	if name, ok := w.names[x.ID]; ok {
		return name
	}
	name := ""
	if full, err := w.client.Get(ctx, x.ID); err == nil {
		name = aboutInput(full.Input)
	}
	w.names[x.ID] = name
	return name
}

// failure is the reason why an item did not complete.
func (w *watcher) failure(ctx context.Context, x api.TaskExecution) string {
	if !x.Status.Terminal() || x.Status == api.Completed {
		return ""
	}
	why, ok := w.errors[x.ID]
	if !ok {
		if full, err := w.client.Get(ctx, x.ID); err == nil && full.Error != nil {
			why = full.Error.Error()
		}
		w.errors[x.ID] = why
	}
	return why
}

// aboutInput looks for a short text that distinguishes one input from another.
func aboutInput(raw json.RawMessage) string {
	var in struct {
		Name, ID, URL, Model, Duration any
		Args                           []any
	}
	if json.Unmarshal(raw, &in) != nil {
		return ""
	}
	const most = 32
	var words []string
	for _, a := range in.Args {
		words = append(words, fmt.Sprint(a))
	}
	for _, v := range []any{in.Name, in.ID, strings.Join(words, " "), in.URL, in.Model, in.Duration} {
		switch v.(type) {
		case string, float64:
			if s := terminal.Clean(fmt.Sprint(v)); s != "" {
				if len([]rune(s)) > most {
					s = string([]rune(s)[:most]) + "…"
				}
				return " " + s
			}
		}
	}
	return ""
}

// readTails continues to read the logs of running executions, and reads those of ended ones once more.
func (w *watcher) readTails(ctx context.Context, tasks *api.Tasks) {
	most := 20
	for _, t := range tasks.Tasks {
		for _, x := range t.Executions {
			tail := w.logs[x.ID]
			ended := x.Status.Terminal()
			if most == 0 || x.StartedAt.IsZero() || (tail != nil && tail.over) {
				continue
			}
			most--
			w.readTail(ctx, x.ID)
			w.logs[x.ID].over = ended
		}
	}
}

func (w *watcher) tailOf(id string) string {
	if t := w.logs[id]; t != nil {
		return t.line
	}
	return ""
}

// readTail continues to read one log and returns its last line. If reading fails, the next call tries again.
func (w *watcher) readTail(ctx context.Context, id string) string {
	t := w.logs[id]
	if t == nil {
		t = &tail{}
		w.logs[id] = t
	}
	page, err := w.client.Logs(ctx, id, client.LogQuery{After: t.after})
	if err != nil {
		return t.line
	}
	t.after = page.NextCursor
	for _, c := range slices.Backward(page.Chunks) {
		b := bytes.TrimRight(c.Bytes(), "\r\n \t")
		if i := bytes.LastIndexAny(b, "\r\n"); i >= 0 {
			b = b[i+1:]
		}
		if len(b) > 0 {
			t.line = string(b[:min(len(b), 400)])
			break
		}
	}
	return t.line
}
