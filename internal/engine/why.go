package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Why answers what an execution is waiting for.
type Why struct {
	Execution flow.ID
	Stage     flow.Stage
	Attempt   int
	Waiting   string // "nothing", "time", "retry", "key", "queue", "worker", "children", "sleep" or "cancel"
	Summary   string // one sentence
	Facts     []string
	Unblock   []string // what would let it go on
	Position  int      // 1: next in its line; 0: in no line
	Queue     string
	Needs     flow.Needs // what a worker of the queue must have
	Key       string
	Holders   []flow.ID // of the key
	Until     time.Time // when the wait ends by itself
	Worker    string    // who holds it
}

// Why says what an execution is waiting for, who holds it, its place in line, and what would unblock it.
func (e *Engine) Why(ctx context.Context, id flow.ID) (Why, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return Why{}, err
	}
	queue, needs := flow.NeedsOf(x.Queue)
	w := Why{Execution: x.ID, Stage: x.Stage, Attempt: x.Attempt, Queue: queue, Needs: needs, Key: x.Key}
	switch {
	case x.Stage.Terminal():
		w.finished(x)
	case x.State.Cancel != nil:
		err = e.whyCancelling(ctx, x, &w)
	case x.Place == flow.Delayed:
		err = e.whyDelayed(ctx, x, &w)
	case x.Place == flow.Waiting:
		err = e.whyWaiting(ctx, x, &w)
	case x.Place == flow.Ready:
		err = e.whyReady(ctx, x, &w)
	case x.Kind == flow.KindWorkflow:
		err = e.whyWorkflow(ctx, x, &w)
	case x.Kind == flow.KindSleep:
		w.Waiting, w.Until = "sleep", x.WakeAt
		w.Summary = fmt.Sprintf("sleeping until %s", clock(x.WakeAt))
	default:
		err = e.whyHeld(ctx, x, &w)
	}
	if err != nil {
		return Why{}, err
	}
	w.deadlines(x)
	return w, nil
}

func (w *Why) finished(x *flow.Execution) {
	w.Waiting = "nothing"
	w.Summary = fmt.Sprintf("nothing: it is %s since %s", x.Stage, clock(x.FinishedAt))
	if x.Outcome != nil && x.Outcome.Error != nil {
		w.Summary += fmt.Sprintf(" (%s: %s)", x.Outcome.Error.Code, x.Outcome.Error.Message)
	}
}

func (w *Why) deadlines(x *flow.Execution) {
	if x.Stage.Terminal() {
		return
	}
	if t := x.QueueDeadline(); !t.IsZero() && x.Place < flow.Held {
		w.Facts = append(w.Facts, fmt.Sprintf("it times out at %s unless a worker takes it (queue_timeout %s)", clock(t), x.QueueTimeout))
	}
	if t := x.TotalDeadline(); !t.IsZero() {
		w.Facts = append(w.Facts, fmt.Sprintf("it must finish by %s (total_timeout %s)", clock(t), x.TotalTimeout))
	}
	if x.Inbox > 0 {
		w.Facts = append(w.Facts, fmt.Sprintf("%d events wait for event %d; the attempt is lost if it does not come by %s", x.Inbox, x.NextSeq, clock(x.GapSince.Add(flow.GapTimeout))))
	}
}

func (e *Engine) whyDelayed(ctx context.Context, x *flow.Execution, w *Why) error {
	w.Until = x.WakeAt
	left := time.Until(x.WakeAt).Round(time.Second)
	if x.Attempt == 1 {
		w.Waiting = "time"
		w.Summary = fmt.Sprintf("waits for its time: starts at %s (in %s)", clock(x.WakeAt), left)
		return nil
	}
	w.Waiting = "retry"
	w.Summary = fmt.Sprintf("attempt %d of %d starts in %s", x.Attempt, max(x.Retry.MaxAttempts+x.HandedBack, x.Attempt), left)
	last, err := e.lastFailure(ctx, x)
	if err != nil {
		return err
	}
	if last != "" {
		w.Summary += ", after " + last
	}
	return nil
}

// lastFailure says how the previous attempt ended.
func (e *Engine) lastFailure(ctx context.Context, x *flow.Execution) (string, error) {
	const last = 10
	events, err := e.opts.Store.Events(ctx, x.ID, max(0, x.NextSeq-1-last), last)
	if err != nil {
		return "", fmt.Errorf("read history: %w", err)
	}
	for _, ev := range slices.Backward(events) {
		switch ev.Type {
		case flow.EvFailed, flow.EvTimedOut, flow.EvLost:
			return describeEvent(ev), nil
		}
	}
	return "", nil
}

func (e *Engine) whyWaiting(ctx context.Context, x *flow.Execution, w *Why) error {
	ahead, err := e.opts.Store.Ahead(ctx, x)
	if err != nil {
		return fmt.Errorf("count the line: %w", err)
	}
	holders, err := e.opts.Store.KeyHolders(ctx, x.Key, 10)
	if err != nil {
		return fmt.Errorf("find the key's holders: %w", err)
	}
	w.Waiting, w.Position = "key", ahead+1
	var names []string
	for _, h := range holders {
		w.Holders = append(w.Holders, h.ID)
		names = append(names, h.ID.String())
	}
	w.Summary = fmt.Sprintf("%s for key %q (limit %d), held by %s", ordinal(w.Position), x.Key, x.KeyLimit, strings.Join(names, ", "))
	w.Unblock = []string{"one of the holders ends (pawl why HOLDER says what it waits for)", "the key's limit is raised in the action's definition"}
	if slices.Contains(w.Holders, x.Parent) {
		w.Facts = append(w.Facts, fmt.Sprintf("workflow %s, which this is a task of, holds the key itself: with limit %d it may wait for ever", x.Parent, x.KeyLimit))
		w.Unblock = append(w.Unblock, "the task is given another key than its workflow has")
	}
	return nil
}

func (e *Engine) whyReady(ctx context.Context, x *flow.Execution, w *Why) error {
	ahead, err := e.opts.Store.Ahead(ctx, x)
	if err != nil {
		return fmt.Errorf("count the queue: %w", err)
	}
	w.Waiting, w.Position = "queue", ahead+1
	sessions, err := e.opts.Store.LiveSessions(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	slots, workers := 0, 0
	var others []lacking
	for _, s := range sessions {
		reach := flow.ReachOf(s.Queues, s.Kinds)
		if needs, ok := reach.Lacks(x.Queue); ok && len(needs) == 0 {
			workers++
			slots += s.Slots
		} else if ok {
			others = append(others, lacking{s, needs})
		}
	}
	where := fmt.Sprintf("queue %q", w.Queue)
	_, needs := flow.SplitLane(x.Queue)
	switch {
	case workers == 0 && len(others) > 0:
		w.unmet(where, needs, others)
		return nil
	case workers == 0:
		w.Waiting = "worker"
		w.Summary = fmt.Sprintf("no live worker serves %s; it is %s in line", where, ordinal(w.Position))
		w.Unblock = []string{"start a worker that serves " + where}
		if len(needs) > 0 {
			w.Unblock[0] += " and has " + allOf(needs)
		}
		return nil
	case len(needs) > 0:
		where += " for " + allOf(needs)
	}
	w.Summary = fmt.Sprintf("%s in %s, which %d %s with %d slots serve", ordinal(w.Position), where, workers, plural(workers, "worker"), slots)
	w.Unblock = []string{"a slot becomes free", "more slots or workers are started", "it is submitted with a higher priority"}
	return nil
}

// lacking is a worker of the right queue that does not have all that is needed.
type lacking struct {
	store.Session
	needs []string
}

// unmet says that none of the workers of a queue has what is needed, and which comes nearest.
func (w *Why) unmet(where string, needs []string, others []lacking) {
	w.Waiting = "worker"
	w.Summary = fmt.Sprintf("no live worker of %s has %s (%d %s it without); it is %s in line", where, allOf(needs), len(others), serve(len(others)), ordinal(w.Position))
	near := slices.MinFunc(others, func(a, b lacking) int { return len(a.needs) - len(b.needs) })
	w.Unblock = []string{fmt.Sprintf("start a worker of %s that has %s (pawl worker --queues %s %s), or submit it to a queue that has one", where, allOf(needs), w.Queue, flags(needs))}
	if len(w.Needs.Labels) == 0 {
		return
	}
	has, _ := flow.OfferedLabels(near.Kinds)
	fact := fmt.Sprintf("the nearest is worker %s: it lacks %s and has ", near.Name, allOf(near.needs))
	if len(has) == 0 {
		fact += "no labels"
	} else {
		fact += "the labels " + flow.LabelText(has)
	}
	w.Facts = append(w.Facts, fact)
}

// flags are those that a worker is started with to have what is needed.
func flags(needs []string) string {
	var all, labels []string
	for _, need := range needs {
		switch _, language := flow.OfferedLanguage(need); {
		case strings.Contains(need, "="):
			labels = append(labels, need)
		case language:
			all = append(all, "--config …")
		default:
			all = append(all, "--runtime …")
		}
	}
	if len(labels) > 0 {
		all = append(all, "--labels "+strings.Join(labels, ","))
	}
	return strings.Join(all, " ")
}

// allOf says what a lane is for.
func allOf(needs []string) string {
	all := make([]string, len(needs))
	for i, need := range needs {
		if name, ok := flow.OfferedLanguage(need); ok {
			all[i] = fmt.Sprintf("a profile of the language %q", name)
		} else if strings.Contains(need, "=") {
			all[i] = "label " + need
		} else {
			all[i] = fmt.Sprintf("runtime %q", need)
		}
	}
	return strings.Join(all, " and ")
}

func serve(workers int) string {
	if workers == 1 {
		return "serves"
	}
	return "serve"
}

func (e *Engine) whyHeld(ctx context.Context, x *flow.Execution, w *Why) error {
	name, expires, err := e.holder(ctx, x)
	if err != nil {
		return err
	}
	w.Worker = name
	w.Waiting = "worker"
	w.Summary = fmt.Sprintf("%s on worker %s since %s", x.Stage, name, clock(x.ClaimedAt))
	if x.Timeout > 0 {
		w.Until = x.ClaimedAt.Add(x.Timeout)
		w.Facts = append(w.Facts, fmt.Sprintf("the attempt times out at %s (timeout %s)", clock(w.Until), x.Timeout))
	}
	if expires.IsZero() {
		w.Summary = fmt.Sprintf("its worker session %s is gone; recovery opens the next attempt within seconds", x.Owner.Text(flow.SessionPrefix))
		return nil
	}
	w.Facts = append(w.Facts, fmt.Sprintf("the worker's lease runs until %s; if it is not renewed, the next attempt is opened then", clock(expires)))
	return nil
}

func (e *Engine) holder(ctx context.Context, x *flow.Execution) (string, time.Time, error) {
	sessions, err := e.opts.Store.LiveSessions(ctx, time.Now())
	if err != nil {
		return "", time.Time{}, fmt.Errorf("list workers: %w", err)
	}
	for _, s := range sessions {
		if s.ID == x.Owner {
			return s.Name, s.ExpiresAt, nil
		}
	}
	return x.Owner.Text(flow.SessionPrefix), time.Time{}, nil
}

func (e *Engine) whyCancelling(ctx context.Context, x *flow.Execution, w *Why) error {
	w.Waiting = "cancel"
	c := x.State.Cancel
	if x.Kind == flow.KindWorkflow {
		if err := e.whyWorkflow(ctx, x, w); err != nil {
			return err
		}
		w.Waiting = "cancel"
		w.Summary = fmt.Sprintf("being ended since %s (%s): %s", clock(c.At), c.Reason, w.Summary)
		return nil
	}
	name, _, err := e.holder(ctx, x)
	if err != nil {
		return err
	}
	w.Worker = name
	w.Summary = fmt.Sprintf("ordered to end at %s (%s): waits for worker %s to confirm that nothing is left running", clock(c.At), c.Reason, name)
	return nil
}

func (e *Engine) whyWorkflow(ctx context.Context, x *flow.Execution, w *Why) error {
	w.Waiting = "children"
	open := map[flow.Stage]int{}
	var first []string
	task, index := "", -1
	for {
		const page = 1000
		children, err := e.opts.Store.Children(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}, task, index, page)
		if err != nil {
			return fmt.Errorf("list tasks: %w", err)
		}
		for _, c := range children {
			task, index = c.Task, c.Index
			if c.Stage.Terminal() {
				continue
			}
			open[c.Stage]++
			if len(first) < 5 {
				first = append(first, fmt.Sprintf("task %s[%d] is %s (%s)", c.Task, c.Index, c.Stage, c.Execution))
			}
		}
		if len(children) < page {
			break
		}
	}
	var counts []string
	for _, s := range flow.Stages() {
		if open[s] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", open[s], s))
		}
	}
	w.Summary = "waits for its tasks: " + strings.Join(counts, ", ")
	if len(counts) == 0 {
		w.Summary = "no task is open: its next step is being decided"
	}
	w.Facts = append(w.Facts, first...)
	if len(first) > 0 {
		w.Unblock = []string{"pawl why on a task says what that one waits for"}
	}
	return nil
}

func describeEvent(ev flow.Event) string {
	text := string(ev.Type)
	if len(ev.Data) > 0 {
		text += " " + string(ev.Data)
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") + "Z" }

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
