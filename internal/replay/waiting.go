package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// What an execution waited for, in the words of `pawl why`. WaitNotKnown: nothing in the record delayed the execution, but its next event
// came later.
const (
	WaitNothing  = "nothing"
	WaitTime     = "time"
	WaitRate     = "rate"
	WaitRetry    = "retry"
	WaitKey      = "key"
	WaitQueue    = "queue"
	WaitPaused   = "paused"
	WaitWorker   = "worker"
	WaitChildren = "children"
	WaitSleep    = "sleep"
	WaitAnswer   = "answer"
	WaitSignal   = "signal"
	WaitNotKnown = "not known"
)

const shownTasks = 5 // tasks of a workflow that one sentence names

// waiting explains what the execution waited for after the latest replayed event.
func (w *walk) waiting(tasks []api.ReplayTask) api.ReplayWhy {
	if w.i == 0 {
		return api.ReplayWhy{Waiting: WaitNothing, Summary: "there was no event yet", Facts: []string{}, NotKnown: []string{}}
	}
	x, last := w.x, &w.rec.Events[w.i-1]
	v := api.ReplayWhy{Key: x.Key, Facts: []string{}, NotKnown: []string{}}
	v.Queue, _ = flow.NeedsOf(x.Queue)
	switch {
	case w.terminal(last):
		w.overWith(&v, last)
	case last.Type == flow.EvLost:
		v.Waiting, v.Worker = WaitNothing, w.worker()
		v.Summary = fmt.Sprintf("nothing: attempt %d was taken back from worker %s (%s)", last.Attempt, w.worker(), textOf(last.Data, "reason"))
	case x.Place == flow.Held:
		v.Worker = w.worker()
		w.whileHeld(&v, last, tasks)
		w.ordered(&v, last)
	case x.Stage == flow.Scheduled:
		w.inQueue(&v)
	case x.Place == flow.Waiting:
		v.Waiting = WaitKey
		v.Summary = fmt.Sprintf("waited in line for concurrency key %q (limit %d)", x.Key, x.KeyLimit)
		v.NotKnown = append(v.NotKnown, "which executions held the key then, and its place in the line")
	default:
		w.beforeQueue(&v, last)
	}
	w.deadlines(&v)
	w.followed(&v, last)
	return v
}

// overWith describes how an attempt had ended.
func (w *walk) overWith(v *api.ReplayWhy, e *flow.Event) {
	v.Waiting = WaitNothing
	v.Summary = fmt.Sprintf("nothing: it had ended as %s", w.x.Stage)
	if n := w.next(0); n != nil && n.Type == flow.EvRequested {
		v.Summary = fmt.Sprintf("nothing: attempt %d had ended as %s", e.Attempt, e.Type)
	}
	v.Summary += failure(e)
}

// failure is the error of an event, in brackets.
func failure(e *flow.Event) string {
	code, message := textOf(e.Data, "code"), textOf(e.Data, "message")
	switch {
	case code == "":
		return ""
	case message == "":
		return fmt.Sprintf(" (%s)", code)
	}
	return fmt.Sprintf(" (%s: %s)", code, flow.Clipped(message, 300))
}

// beforeQueue explains why an accepted execution was not in its queue yet.
func (w *walk) beforeQueue(v *api.ReplayWhy, e *flow.Event) {
	x := w.x
	due := x.WakeAt
	if x.Place != flow.Delayed {
		due = time.Time{}
	}
	slot := w.rec.Execution.SlotAt // drawn once: when the first attempt became due
	switch {
	case e.Attempt > 1 && due.After(e.At):
		v.Waiting, v.Until = WaitRetry, due
		v.Summary = fmt.Sprintf("waited for attempt %d, which was to start at %s (%s later), after %s", e.Attempt, moment(due), lasting(due.Sub(e.At)), w.before(e))
		return
	case due.After(e.At):
		v.Waiting, v.Until = WaitTime, due
		v.Summary = fmt.Sprintf("waited for its time: it was to start at %s (%s later)", moment(due), lasting(due.Sub(e.At)))
		if x.Rate.Key != "" && slot.After(due) {
			v.Facts = append(v.Facts, fmt.Sprintf("then the rate of key %q let it begin at %s", x.Rate.Key, moment(slot)))
		}
		return
	case e.Attempt == 1 && x.Rate.Key != "" && slot.After(e.At):
		v.Waiting, v.Until = WaitRate, slot
		v.Summary = fmt.Sprintf("waited for the rate of key %q (%d in %s), which let it begin at %s (%s later)", x.Rate.Key, x.Rate.Limit, x.Rate.Per, moment(slot), lasting(slot.Sub(e.At)))
		return
	}
	accepted := "it had been accepted"
	if e.Attempt > 1 {
		accepted = fmt.Sprintf("attempt %d was due at once, after %s", e.Attempt, w.before(e))
	}
	next := w.next(0)
	if next == nil || next.At.Sub(e.At) > time.Second {
		v.Waiting = WaitNotKnown
		v.Summary = accepted + "; what kept it out of its queue is not known"
		v.NotKnown = append(v.NotKnown, "whether no server was running, or the engine had put it aside")
		return
	}
	v.Waiting, v.Summary = WaitNothing, "nothing: "+accepted
}

// before describes the end of the attempt before the one that an event opens.
func (w *walk) before(e *flow.Event) string {
	p := w.next(-2)
	if p == nil {
		return textOf(e.Data, "after")
	}
	switch p.Type {
	case flow.EvLost:
		return fmt.Sprintf("the one before was taken back from its worker (%s)", textOf(p.Data, "reason"))
	case flow.EvTimedOut:
		return "the one before timed out" + failure(p)
	}
	return "the one before failed" + failure(p)
}

// inQueue explains for which worker an execution waited.
func (w *walk) inQueue(v *api.ReplayWhy) {
	x := w.x
	for i := w.i - 1; i >= 0; i-- {
		e := &w.rec.Events[i]
		if e.Type != flow.EvScheduled {
			continue
		}
		if x.Kind.ByEngine() && flow.IsSuspension(e) {
			v.Waiting = WaitPaused
			v.Summary = fmt.Sprintf("action %q was paused", textOf(e.Data, "paused"))
			v.NotKnown = append(v.NotKnown, "who had paused the action, why and until when")
			return
		}
		break
	}
	if n := w.next(0); n != nil && n.Type == flow.EvProvisioning && (x.Kind.ByEngine() || flow.ClaimedByEngine(n)) {
		v.Waiting, v.Summary = WaitNothing, "nothing: the engine was about to carry it out itself"
		return
	}
	v.Waiting = WaitQueue
	_, needs := flow.NeedsOf(x.Queue)
	v.Summary = fmt.Sprintf("waited in queue %q for a worker with a free slot", v.Queue)
	if has := mustHave(needs); has != "" {
		v.Summary += " that has " + has
	}
	v.NotKnown = append(v.NotKnown, "its place in the line, which workers there were, and whether the queue, the action or a worker was paused")
}

func mustHave(n flow.Needs) string {
	var all []string
	if n.Handler != "" {
		all = append(all, "a handler for kind "+n.Handler)
	}
	if n.Runtime != "" {
		all = append(all, n.Runtime)
	}
	if len(n.Labels) > 0 {
		all = append(all, "the label "+flow.LabelText(n.Labels))
	}
	return strings.Join(all, " and ")
}

// whileHeld describes what a held attempt did or waited for.
func (w *walk) whileHeld(v *api.ReplayWhy, last *flow.Event, tasks []api.ReplayTask) {
	x := w.x
	switch {
	case x.Stage == flow.Provisioning && x.Kind.ByEngine():
		v.Waiting, v.Summary = WaitNothing, "nothing: the engine was about to carry it out itself"
	case x.Kind == flow.KindWorkflow:
		w.forTasks(v, last, tasks)
	case x.Kind == flow.KindSleep:
		v.Waiting, v.Until = WaitSleep, x.SleepsUntil(w.rec.Sleeps)
		v.Summary = "slept until " + moment(v.Until)
		if p := x.State.Pause; x.StandsStill() && x.PausedAt(last.At) {
			pausedAt := p.At
			if pausedAt.Before(x.ClaimedAt) {
				pausedAt = x.ClaimedAt
			}
			left := v.Until.Sub(pausedAt)
			v.Waiting, v.Until, v.Summary = WaitPaused, p.Until, fmt.Sprintf("%s: its sleep stood still, with %s left", pausedSince(p), lasting(left))
		}
	case x.Kind == flow.KindAsk:
		w.forAnswer(v)
	case x.Kind == flow.KindWait:
		w.forSignal(v)
	default:
		v.Waiting = WaitWorker
		v.Summary = fmt.Sprintf("%s on worker %s since %s", x.Stage, w.worker(), moment(x.ClaimedAt))
		if x.Timeout > 0 {
			v.Until = x.ClaimedAt.Add(x.Timeout)
			v.Facts = append(v.Facts, fmt.Sprintf("the attempt would have timed out at %s (timeout %s)", moment(v.Until), x.Timeout))
		}
	}
}

// ordered adds that an order to end the execution may have existed already: it is recorded only once it is obeyed.
func (w *walk) ordered(v *api.ReplayWhy, last *flow.Event) {
	end := &w.rec.Events[len(w.rec.Events)-1]
	if end.Seq > last.Seq && (end.Type == flow.EvCancelled || end.Type == flow.EvTimedOut) {
		v.NotKnown = append(v.NotKnown, fmt.Sprintf("whether its end (%s, event %d) had been ordered by then", end.Type, end.Seq))
	}
}

func (w *walk) forTasks(v *api.ReplayWhy, last *flow.Event, tasks []api.ReplayTask) {
	x := w.x
	v.Waiting = WaitChildren
	var open []string
	for i := range tasks {
		t := &tasks[i]
		if t.Open == 0 {
			continue
		}
		v.Tasks = append(v.Tasks, t.Task)
		text := t.Task
		if n := max(t.Total, t.Started); n > 1 {
			text = fmt.Sprintf("%s (%d of %d open)", t.Task, t.Open, n)
		}
		open = append(open, text)
	}
	switch {
	case w.kids == nil:
		v.Summary = "waited for its tasks"
		v.NotKnown = append(v.NotKnown, "for which of its tasks: "+w.rec.Without)
	case len(open) > 0:
		v.Summary = "waited for " + named(open)
	default:
		v.Summary = "no task was open: its next step was being decided"
	}
	if w.wf != nil && w.wf.lost {
		v.NotKnown = append(v.NotKnown, "what its tasks did after the history stopped following from the rules")
	}
	if w.wf != nil && !w.wf.lost {
		v.Facts = append(v.Facts, notBegun(w.wf.def, tasks)...)
	}
	if !x.PausedAt(last.At) {
		return
	}
	p, running := x.State.Pause, v.Summary
	v.Waiting, v.Until, v.Summary = WaitPaused, p.Until, pausedSince(p)+": it started no tasks"
	if len(open) > 0 {
		v.Facts = slices.Insert(v.Facts, 0, "it "+running)
	}
}

// pausedSince describes a pause of an execution: author, times and reason.
func pausedSince(p *flow.Pause) string {
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	text += " since " + moment(p.At)
	if !p.Until.IsZero() {
		text += " until " + moment(p.Until)
	}
	if p.Reason != "" {
		text += " (" + p.Reason + ")"
	}
	return text
}

// notBegun explains what tasks that had not begun waited for.
func notBegun(def *definition.Workflow, tasks []api.ReplayTask) (facts []string) {
	left := 0
	for i := range tasks {
		t := &tasks[i]
		if t.Started > 0 || t.Total > 0 || t.Mark != "" {
			continue
		}
		var needs []string
		for _, n := range def.Tasks[i].Needs {
			if k := &tasks[n]; k.Open > 0 || k.Started == 0 && k.Mark == "" || k.Started < k.Total {
				needs = append(needs, k.Task)
			}
		}
		switch {
		case len(needs) == 0:
		case len(facts) == shownTasks:
			left++
		default:
			facts = append(facts, fmt.Sprintf("task %s had not begun: it needs %s", t.Task, named(needs)))
		}
	}
	if left > 0 {
		facts = append(facts, fmt.Sprintf("%d more tasks had not begun", left))
	}
	return facts
}

// forAnswer explains whose answer an execution waited for.
func (w *walk) forAnswer(v *api.ReplayWhy) {
	v.Waiting, v.Summary = WaitAnswer, "waited for an answer"
	q, _, err := new(definition.Questions).Read(w.x.Payload())
	if err != nil {
		v.NotKnown = append(v.NotKnown, "what was asked: the question cannot be read")
		return
	}
	if q.Title != "" {
		v.Summary += fmt.Sprintf(" to %q", q.Title)
	}
	if len(q.Assignees) > 0 {
		v.Summary += " by " + strings.Join(q.Assignees, ", ")
	}
	if q.Expires > 0 {
		v.Facts = append(v.Facts, fmt.Sprintf("the question expires %s after it was first asked", q.Expires))
	}
	v.NotKnown = append(v.NotKnown, "which answers had been refused by then")
}

func (w *walk) forSignal(v *api.ReplayWhy) {
	v.Waiting, v.Summary = WaitSignal, "waited for a signal"
	k, err := new(definition.Waits).Read(w.x.Payload())
	if err != nil {
		v.NotKnown = append(v.NotKnown, "which: the wait cannot be read")
		return
	}
	v.Summary += " " + k.Signal
	if k.Subject != "" {
		v.Summary += " about " + k.Subject
	}
	if k.Timeout > 0 {
		v.Facts = append(v.Facts, fmt.Sprintf("it waits %s at most", time.Duration(k.Timeout)))
	}
	v.NotKnown = append(v.NotKnown, "which signals had come by then and did not fit")
}

// deadlines adds until when the execution had to be claimed, and to end.
func (w *walk) deadlines(v *api.ReplayWhy) {
	x := w.x
	if v.Waiting == WaitNothing {
		return
	}
	if t := x.QueueDeadline(); !t.IsZero() && x.Place < flow.Held {
		v.Facts = append(v.Facts, fmt.Sprintf("it would have timed out at %s unless a worker took it (queue_timeout %s)", moment(t), x.QueueTimeout))
	}
	if t := x.TotalDeadline(); !t.IsZero() {
		v.Facts = append(v.Facts, fmt.Sprintf("it had to end by %s (total_timeout %s)", moment(t), x.TotalTimeout))
	}
}

func (w *walk) followed(v *api.ReplayWhy, last *flow.Event) {
	n := w.next(0)
	if n == nil {
		if !w.terminal(last) {
			v.Facts = append(v.Facts, "no event has followed yet")
		}
		return
	}
	text := fmt.Sprintf("event %d, %s", n.Seq, n.Type)
	if by := textOf(n.Data, "worker"); n.Type == flow.EvProvisioning && by != "" {
		text += " by " + by
	}
	if gap := n.At.Sub(last.At); gap > 0 {
		text += fmt.Sprintf(", came %s later", lasting(gap))
	} else {
		text += ", came in the same moment"
	}
	v.Facts = append(v.Facts, text)
}

// named lists the first few names, for a sentence.
func named(all []string) string {
	switch n := len(all); {
	case n > shownTasks:
		return fmt.Sprintf("%s and %d more", strings.Join(all[:shownTasks], ", "), n-shownTasks)
	case n > 1:
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return strings.Join(all, "")
}

// moment formats a past time with its date, in seconds.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// lasting formats a span of time in milliseconds, or coarser if it is long.
func lasting(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 3*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= time.Minute:
		return d.Round(time.Second).String()
	}
	return max(d.Round(time.Millisecond), time.Millisecond).String()
}
