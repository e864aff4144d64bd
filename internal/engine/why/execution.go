// Package why explains what executions and schedules wait for: the holders, the place in the wait list, and what would end the wait. It
// reads and decides nothing.
package why

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// answer is the explanation of what an execution waits for.
type answer struct {
	api.Why
	root *answer // of Root
	path string  // the names of the tasks down to Root
}

func cancelIt(text string, id flow.ID) api.Advice {
	return api.Advice{Text: text, Do: "cancel", Kind: "execution", Name: id.String(), Command: "pawl cancel " + id.String()}
}

func lookAt(text string, id flow.ID) api.Advice {
	return api.Advice{Text: text + "; see what it waits for", Do: "why", Kind: "execution", Name: id.String(), Command: "pawl why " + id.String()}
}

func resumeIt(kind, name string) api.Advice {
	return ResumeIt(kind, name, fmt.Sprintf("pawl resume %s %s", kind, name))
}

// ResumeIt is the advice to resume a paused subject, with its command line.
func ResumeIt(kind, name, command string) api.Advice {
	return api.Advice{Text: "it is resumed", Do: "resume", Kind: kind, Name: name, Command: command}
}

// Explainer answers from the store, the catalog and, if these are not enough, the engine.
type Explainer struct {
	Store   store.Reader
	Catalog *catalog.Catalog
	Engine  Engine
	Waits   *definition.Waits
	Cut     func(session flow.ID) bool // whether the session's worker cannot be reached now; nil: all can
}

// Engine knows the pauses and the reruns.
type Engine interface {
	// Paused are the pauses in force.
	Paused(ctx context.Context) ([]store.Pause, error)
}

// Execution explains what an execution waits for, who holds it, its place in the wait list, and what would end the wait.
func (e *Explainer) Execution(ctx context.Context, id flow.ID) (api.Why, error) {
	x, err := e.Store.Get(ctx, id)
	if err != nil {
		return api.Why{}, err
	}
	w, err := e.explain(ctx, x, &descent{left: mostScanned})
	return w.Why, err
}

func (e *Explainer) explain(ctx context.Context, x *flow.Execution, d *descent) (w answer, err error) {
	queue, needs := flow.NeedsOf(x.Queue)
	w = answer{Why: api.Why{ID: x.ID.String(), Status: api.Status(x.Stage.String()), Attempt: x.Attempt, Facts: []string{}, Unblock: []api.Advice{},
		Queue: queue, Handler: needs.Handler, Runtime: needs.Runtime, WorkerLabels: needs.Labels, Key: x.Key, KeyLimit: x.KeyLimit,
		Action: x.Action, Kind: string(x.Kind), Task: x.Task, Index: x.Index, Workflow: x.Parent.String(), Waiting: cmp.Or(x.WaitsFor(), "nothing")}}
	switch {
	case x.Stage.Terminal():
		w.finished(x)
	case x.Aside != nil:
		w.putAside(x)
	case x.State.Cancel != nil:
		err = e.cancelling(ctx, x, &w, d)
	case x.Place == flow.Delayed:
		err = e.delayed(ctx, x, &w)
	case x.Place == flow.Waiting:
		err = e.waiting(ctx, x, &w)
	case x.Place == flow.Ready:
		err = e.ready(ctx, x, &w)
	case x.Kind == flow.KindWorkflow:
		err = e.workflow(ctx, x, &w, d)
	case x.Kind == flow.KindSleep:
		w.Until = x.WakeAt
		w.Summary = fmt.Sprintf("sleeping until %s", Clock(x.WakeAt))
	case x.Kind == flow.KindAsk:
		err = e.asking(ctx, x, &w)
	case x.Kind == flow.KindWait:
		err = e.awaiting(ctx, x, &w)
	default:
		err = e.held(ctx, x, &w)
	}
	if err != nil {
		return answer{}, err
	}
	w.pausedItself(x)
	w.deadlines(x)
	w.rerun(x)
	switch {
	case w.Position == 0:
	case w.Waiting == "key":
		w.PlaceOf = "key"
	default:
		w.PlaceOf = "queue"
	}
	return w, nil
}

func (w *answer) finished(x *flow.Execution) {
	w.Summary = fmt.Sprintf("nothing: it is %s since %s", x.Stage, Clock(x.FinishedAt))
	if x.Outcome != nil && x.Outcome.Error != nil {
		w.Summary += fmt.Sprintf(" (%s: %s)", x.Outcome.Error.Code, x.Outcome.Error.Message)
	}
}

// rerun adds which execution this one repeats, or whose outcome it has.
func (w *answer) rerun(x *flow.Execution) {
	again := x.AsRerun()
	switch {
	case !x.RerunOf.IsZero():
		w.Facts = append(w.Facts, fmt.Sprintf("it runs %s again", x.RerunOf))
		for _, override := range again.Outputs[:min(len(again.Outputs), catalog.NamesShown)] {
			w.Facts = append(w.Facts, fmt.Sprintf("%s has given the output of %s[%d]", again.OverriddenBy, override.Task, override.Index))
		}
		if len(again.Only) > 0 {
			w.Facts = append(w.Facts, fmt.Sprintf("it is of %s only; %s left out", strings.Join(again.Only, ", "), leftOut(again.LeftOut)))
		}
	case !again.RetryOf.IsZero():
		w.Facts = append(w.Facts, fmt.Sprintf("it is a retry of %s", again.RetryOf))
	case again.OverriddenBy != "":
		w.Facts = append(w.Facts, fmt.Sprintf("it did not run: its output was given by %s", again.OverriddenBy))
	case x.Cached():
		w.Facts = append(w.Facts, fmt.Sprintf("it did not run: cached: outcome of %s", x.ReusedOf))
	case !x.ReusedOf.IsZero():
		w.Facts = append(w.Facts, fmt.Sprintf("it did not run: its outcome is that of %s, which had the same to do", x.ReusedOf))
	}
}

// leftOut lists the tasks that are left out, with their verb.
func leftOut(names []string) string {
	switch {
	case len(names) == 0:
		return "nothing is"
	case len(names) == 1:
		return names[0] + " is"
	case len(names) > catalog.NamesShown:
		return fmt.Sprintf("%s and %d more are", strings.Join(names[:catalog.NamesShown], ", "), len(names)-catalog.NamesShown)
	}
	return strings.Join(names, ", ") + " are"
}

func (w *answer) putAside(x *flow.Execution) {
	w.Until = x.Aside.Until
	w.Summary = fmt.Sprintf("put aside by the engine: a decision about it was refused (%s)", x.Aside.Reason)
	w.Facts = append(w.Facts, fmt.Sprintf("the engine tries it again at %s; it has been put aside %d times", Clock(x.Aside.Until), x.Aside.Times))
	w.Unblock = append(w.Unblock, api.Advice{Text: "what the reason names is mended, or a version of Pawl that can decide about it is started"}, cancelIt("it is cancelled", x.ID))
}

func (w *answer) deadlines(x *flow.Execution) {
	if x.Stage.Terminal() {
		return
	}
	if t := x.QueueDeadline(); !t.IsZero() && x.Place < flow.Held {
		w.Facts = append(w.Facts, fmt.Sprintf("it times out at %s unless a worker takes it (queue_timeout %s)", Clock(t), x.QueueTimeout))
		w.Deadlines = append(w.Deadlines, api.Deadline{Of: "queue_timeout", At: t})
	}
	if t := x.TotalDeadline(); !t.IsZero() {
		w.Facts = append(w.Facts, fmt.Sprintf("it must finish by %s (total_timeout %s)", Clock(t), x.TotalTimeout))
		w.Deadlines = append(w.Deadlines, api.Deadline{Of: "total_timeout", At: t})
	}
	if x.Inbox > 0 {
		deadline := x.GapSince.Add(flow.GapTimeout)
		w.Facts = append(w.Facts, fmt.Sprintf("%d events wait for event %d; the attempt is lost if it does not come by %s", x.Inbox, x.NextSeq,
			Clock(deadline)))
		w.Deadlines = append(w.Deadlines, api.Deadline{Of: "gap", At: deadline})
	}
	slices.SortFunc(w.Deadlines, func(a, b api.Deadline) int { return a.At.Compare(b.At) })
}

func (e *Explainer) delayed(ctx context.Context, x *flow.Execution, w *answer) error {
	w.Until = x.WakeAt
	remaining := span(time.Now(), x.WakeAt)
	switch w.Waiting {
	case "rate":
		w.rated(x, remaining)
		return nil
	case "time":
		w.Summary = fmt.Sprintf("waits for its time: starts at %s (in %s)", Clock(x.WakeAt), remaining)
		return nil
	}
	w.Summary = fmt.Sprintf("attempt %d of %d starts in %s", x.Attempt, max(x.Retry.MaxAttempts+x.HandedBack, x.Attempt), remaining)
	last, err := e.lastFailure(ctx, x)
	if err != nil {
		return err
	}
	if last != "" {
		w.Summary += ", after " + last
	}
	return nil
}

// rated adds that an execution waits for the slot of its rate.
func (w *answer) rated(x *flow.Execution, remaining string) {
	w.Summary = fmt.Sprintf("waits for the rate of key %q until %s (in %s)", x.Rate.Key, Clock(x.WakeAt), remaining)
	w.Facts = append(w.Facts, fmt.Sprintf("the rate is %s; this execution has its slot, and each that came before it has one before", x.Rate.Text()))
}

// lastFailure describes how the previous attempt ended.
func (e *Explainer) lastFailure(ctx context.Context, x *flow.Execution) (string, error) {
	const last = 10
	events, err := e.Store.Events(ctx, x.ID, max(0, x.NextSeq-1-last), last)
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

func (e *Explainer) waiting(ctx context.Context, x *flow.Execution, w *answer) error {
	ahead, err := e.Store.Ahead(ctx, x)
	if err != nil {
		return fmt.Errorf("count the wait list: %w", err)
	}
	holders, err := e.Store.KeyHolders(ctx, x.Key, 10)
	if err != nil {
		return fmt.Errorf("find the key's holders: %w", err)
	}
	w.Position = ahead + 1
	for _, h := range holders {
		w.Holders = append(w.Holders, h.ID.String())
	}
	w.Summary = fmt.Sprintf("%s for key %q (limit %d), held by %s", ordinal(w.Position), x.Key, x.KeyLimit, strings.Join(w.Holders, ", "))
	if len(holders) > 0 {
		w.Unblock = append(w.Unblock, lookAt("a holder ends", holders[0].ID))
	}
	w.Unblock = append(w.Unblock, api.Advice{Text: raisedWhere(x)})
	if w.SelfHeld = slices.Contains(w.Holders, x.Parent.String()); w.SelfHeld {
		w.Facts = append(w.Facts, fmt.Sprintf("workflow %s, which this is a task of, holds the key itself: with limit %d it may wait for ever", x.Parent, x.KeyLimit))
		w.Unblock = append(w.Unblock, api.Advice{Text: "the task is given another key than its workflow has"})
	}
	return nil
}

// raisedWhere names where the limit of an execution's key may be defined.
func raisedWhere(x *flow.Execution) string {
	task := fmt.Sprintf("task %s of its workflow's definition", x.Task)
	switch {
	case x.Version > 0 && x.Parent.IsZero():
		return fmt.Sprintf("the key's limit is raised in the definition of %s, or with the submission if the key came with it", x.Action)
	case x.Version > 0:
		return fmt.Sprintf("the key's limit is raised in the definition of %s, or in %s", x.Action, task)
	case !x.Parent.IsZero():
		return "the key's limit is raised in " + task
	}
	return "it is submitted again with a higher limit of its key, which came with it"
}

func (e *Explainer) held(ctx context.Context, x *flow.Execution, w *answer) error {
	name, expires, err := e.holder(ctx, x)
	if err != nil {
		return err
	}
	w.Worker = name
	w.Summary = fmt.Sprintf("%s on worker %s since %s", x.Stage, name, Clock(x.ClaimedAt))
	waiting, err := e.saidToWait(ctx, x)
	if err != nil {
		return err
	}
	if waiting != "" {
		w.Summary += ", and waits: " + waiting
	}
	if x.Timeout > 0 {
		w.Until = x.ClaimedAt.Add(x.Timeout)
		w.Facts = append(w.Facts, fmt.Sprintf("the attempt times out at %s (timeout %s)", Clock(w.Until), x.Timeout))
		w.Deadlines = append(w.Deadlines, api.Deadline{Of: "timeout", At: w.Until})
	}
	if expires.IsZero() {
		w.Summary = fmt.Sprintf("its worker session %s is gone; recovery opens the next attempt within seconds", x.Owner.Text(flow.SessionPrefix))
		return nil
	}
	if e.Cut != nil && e.Cut(x.Owner) {
		w.Summary += ", and its worker is behind a broker that does not answer"
		w.Unblock = append(w.Unblock, api.Advice{Text: "the broker answers before the worker stops, after two thirds of a lease", Command: "pawl doctor --broker URL"})
	}
	w.LeaseUntil = expires
	w.Facts = append(w.Facts, fmt.Sprintf("the worker's lease runs until %s; if it is not renewed, the next attempt is opened then", Clock(expires)))
	return nil
}

// saidToWait is the last message of the attempt's handler about what it waits for.
func (e *Explainer) saidToWait(ctx context.Context, x *flow.Execution) (string, error) {
	const last = 10
	events, err := e.Store.Events(ctx, x.ID, max(0, x.NextSeq-1-last), last)
	if err != nil {
		return "", fmt.Errorf("read history: %w", err)
	}
	for _, ev := range slices.Backward(events) {
		if ev.Attempt != x.Attempt || ev.Type != flow.EvProgress {
			continue
		}
		var said struct {
			Waiting *string `json:"waiting"`
		}
		if json.Unmarshal(ev.Data, &said) == nil && said.Waiting != nil {
			return *said.Waiting, nil
		}
	}
	return "", nil
}

func (e *Explainer) holder(ctx context.Context, x *flow.Execution) (string, time.Time, error) {
	sessions, err := e.Store.LiveSessions(ctx)
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

func (e *Explainer) cancelling(ctx context.Context, x *flow.Execution, w *answer, d *descent) error {
	c := x.State.Cancel
	if x.Kind == flow.KindWorkflow {
		if err := e.workflow(ctx, x, w, d); err != nil {
			return err
		}
		w.Summary = fmt.Sprintf("being ended since %s (%s): %s", Clock(c.At), c.Reason, w.Summary)
		if c.Cleaning && !c.Over {
			w.Facts = append(w.Facts, fmt.Sprintf("it is cleaning up until %s at the latest: pawl cancel %s ends that at once", Clock(c.Until), x.ID))
		}
		return nil
	}
	name, _, err := e.holder(ctx, x)
	if err != nil {
		return err
	}
	w.Worker = name
	w.Summary = fmt.Sprintf("ordered to end at %s (%s): waits for worker %s to confirm that nothing is left running", Clock(c.At), c.Reason, name)
	return nil
}

// describeEvent describes how an attempt ended.
func describeEvent(ev flow.Event) string {
	var data struct {
		flow.Error
		Reason string `json:"reason"`
	}
	if len(ev.Data) > 0 && json.Unmarshal(ev.Data, &data) != nil {
		data.Reason = shortened(string(ev.Data))
	}
	text := "it failed"
	switch ev.Type {
	case flow.EvTimedOut:
		text = "it timed out"
	case flow.EvLost:
		text = "its worker was lost"
	}
	switch {
	case data.Code != "":
		return text + because(&data.Error)
	case data.Reason != "":
		return fmt.Sprintf("%s (%s)", text, data.Reason)
	}
	return text
}

// Clock formats a moment for a sentence: the time of day, and the date if it is half a day or more away.
func Clock(t time.Time) string {
	if away := time.Until(t).Abs(); away >= 12*time.Hour {
		return t.UTC().Format("2006-01-02 15:04:05Z")
	}
	return t.UTC().Format("15:04:05Z")
}

// span formats the time between two moments in seconds, or in days from three days on: a time.Duration ends after 292 years.
func span(from, to time.Time) string {
	const day = 24 * 60 * 60
	if seconds := to.Unix() - from.Unix(); seconds >= 3*day {
		return fmt.Sprintf("%d days", seconds/day)
	}
	return to.Sub(from).Round(time.Second).String()
}

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
