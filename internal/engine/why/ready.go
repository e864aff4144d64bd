package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// ready explains what an execution in its queue waits for: its position, a pause of its action, its queue or its workers, or a worker that
// can run it. The first of these that applies is the answer; the others are added as facts.
func (e *Explainer) ready(ctx context.Context, x *flow.Execution, w *answer) error {
	ahead, err := e.Store.Ahead(ctx, x)
	if err != nil {
		return fmt.Errorf("count the queue: %w", err)
	}
	w.Position = ahead + 1
	paused, err := e.Engine.Paused(ctx)
	if err != nil {
		return err
	}
	if w.pausedAction(x, paused) {
		return nil
	}
	sessions, err := e.Store.LiveSessions(ctx)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	if p := pauseOf(paused, store.PausedQueue, w.Queue); p != nil {
		w.paused(p, fmt.Sprintf("; it is %s in line", ordinal(w.Position)))
		return nil
	}
	c := candidatesOf(x.Queue, w.Handler, sessions, paused)
	w.count(&c)
	where := fmt.Sprintf("queue %q", w.Queue)
	_, needs := flow.SplitRoutingKey(x.Queue)
	if len(c.serving) == 0 {
		w.noWorker(where, needs, &c)
		return nil
	}
	for i := range c.rests {
		w.Facts = append(w.Facts, pauseText(&c.rests[i]))
	}
	if len(needs) > 0 {
		where += " for " + allOf(needs)
	}
	w.Summary = fmt.Sprintf("%s in %s, which %d %s with %d slots serve", ordinal(w.Position), where, w.Workers, plural(w.Workers, "worker"), w.Slots)
	w.Unblock = []api.Advice{{Text: "a slot becomes free"}, {Text: "more slots or workers are started"}, {Text: "it is submitted with a higher priority"}}
	held, err := e.whoHolds(ctx, c.serving)
	if held != "" {
		w.Facts = append(w.Facts, held)
	}
	return err
}

// pauseOf is the pause of a subject; nil: it is not paused.
func pauseOf(paused []store.Pause, kind store.PauseKind, name string) *store.Pause {
	if i := slices.IndexFunc(paused, func(p store.Pause) bool { return p.Of == kind && p.Name == name }); i >= 0 {
		return &paused[i]
	}
	return nil
}

// pausedAction adds that the execution's action is paused, or was until a moment ago, and reports whether that is so. It gives no position,
// because executions of other actions continue.
func (w *answer) pausedAction(x *flow.Execution, paused []store.Pause) bool {
	if p := pauseOf(paused, store.PausedAction, x.Action); p != nil {
		w.Position = 0
		w.paused(p, "")
		return true
	}
	if _, held := flow.PausedAction(x.Queue); held {
		w.Position = 0
		w.Waiting, w.Summary = "paused", fmt.Sprintf("action %q was paused until now; the engine puts what waited for that back", x.Action)
		w.Unblock = []api.Advice{{Text: "nothing needs to be done: it goes on within seconds"}}
		return true
	}
	return false
}

// candidates are the live workers, grouped by whether they could run an execution.
type candidates struct {
	serving []store.Session // can take it
	rests   []store.Pause   // of paused workers that could run it
	others  []lacking       // they serve its queue and lack something that it needs
	able    []store.Session // of any queue: they have the handler that it needs
}

// candidatesOf groups live workers for an execution under a routing key.
func candidatesOf(routingKey, handler string, sessions []store.Session, paused []store.Pause) (c candidates) {
	for _, s := range sessions {
		needs, ok := flow.ReachOf(s.Queues, s.Kinds).Lacks(routingKey)
		if p := pauseOf(paused, store.PausedWorker, s.Name); ok && len(needs) == 0 && p != nil {
			c.rests = append(c.rests, *p)
		} else if ok && len(needs) == 0 {
			c.serving = append(c.serving, s)
		} else if ok {
			c.others = append(c.others, lacking{s, needs})
		}
		if slices.Contains(s.Kinds, handler) {
			c.able = append(c.able, s)
		}
	}
	return c
}

// count adds how many workers and slots serve, and what the nearest others lack.
func (w *answer) count(c *candidates) {
	w.Workers = len(c.serving)
	for _, s := range c.serving {
		w.Slots += s.Slots
	}
	for _, o := range c.others[:min(len(c.others), lackingShown)] {
		l := api.LackingWorker{Worker: o.Name}
		for _, need := range o.needs {
			l.Lacks = append(l.Lacks, allOf([]string{need}))
		}
		w.Lacking = append(w.Lacking, l)
	}
}

// noWorker explains why no live worker can run an execution: the suitable ones are paused, lack its handler or
// something else, or there are none.
func (w *answer) noWorker(where string, needs []string, c *candidates) {
	handler := w.Handler
	switch {
	case len(c.rests) > 0:
		w.paused(&c.rests[0], fmt.Sprintf(", and no other worker serves %s; it is %s in line", where, ordinal(w.Position)))
		for i := range c.rests[1:] {
			w.Facts = append(w.Facts, pauseText(&c.rests[1+i]))
		}
	case handler != "" && !slices.ContainsFunc(c.others, func(o lacking) bool { return slices.Contains(o.Kinds, handler) }):
		w.unhandled(where, needs, len(c.others), c.able)
	case len(c.others) > 0:
		w.noneServes(where, needs, c.others)
	default:
		w.Waiting = "worker"
		w.Summary = fmt.Sprintf("no live worker serves %s; it is %s in line", where, ordinal(w.Position))
		w.Unblock = []api.Advice{{Text: "start a worker that serves " + where}}
		if len(needs) > 0 {
			w.Unblock[0].Text += " and has " + allOf(needs)
		}
	}
}

// lackingShown is how many unsuitable workers an answer lists.
const lackingShown = 10

// unhandled adds that no worker of a queue has the needed handler, and which workers of other queues have it.
func (w *answer) unhandled(where string, needs []string, serving int, able []store.Session) {
	w.Waiting = "worker"
	rest := slices.DeleteFunc(slices.Clone(needs), func(need string) bool { _, kind := flow.NeededKind(need); return kind })
	switch {
	case len(able) == 0:
		w.Summary = fmt.Sprintf("no live worker has a handler for kind %s; it is %s in line", w.Handler, ordinal(w.Position))
	case serving == 0:
		w.Summary = fmt.Sprintf("no live worker serves %s; it is %s in line", where, ordinal(w.Position))
	default:
		w.Summary = fmt.Sprintf("no live worker of %s has a handler for kind %s (%d %s it without); it is %s in line", where, w.Handler, serving, serve(serving), ordinal(w.Position))
	}
	w.Unblock = []api.Advice{{Text: fmt.Sprintf("start a program that serves handler %q on %s (package handler)", w.Handler, where)}}
	if len(rest) > 0 {
		w.Unblock[0].Text += " and has " + allOf(rest)
	}
	const few = 3
	for _, s := range able[:min(few, len(able))] {
		w.Facts = append(w.Facts, fmt.Sprintf("worker %s has it, and serves %s %s", s.Name, plural(len(s.Queues), "queue"), strings.Join(s.Queues, ", ")))
	}
}

// lacking is a worker of the right queue that lacks some needs.
type lacking struct {
	store.Session
	needs []string
}

// noneServes adds that no worker of a queue meets the needs of the execution, and which worker lacks the fewest.
func (w *answer) noneServes(where string, needs []string, others []lacking) {
	w.Waiting = "worker"
	runs := func(o lacking) bool { return !slices.Contains(o.needs, flow.NeedBuiltIns) }
	if !slices.ContainsFunc(others, runs) {
		needs = append(needs, flow.NeedBuiltIns)
	}
	w.Summary = fmt.Sprintf("no live worker of %s has %s (%d %s it without); it is %s in line", where, allOf(needs), len(others), serve(len(others)), ordinal(w.Position))
	near := slices.MinFunc(others, func(a, b lacking) int { return len(a.needs) - len(b.needs) })
	start := api.Advice{Text: fmt.Sprintf("start a worker of %s that has %s", where, allOf(needs))}
	if w.Handler != "" {
		start.Text += " (package handler)"
	} else {
		start.Command = strings.TrimSpace(fmt.Sprintf("pawl worker --queues %s %s", w.Queue, flags(needs)))
	}
	w.Unblock = []api.Advice{start, {Text: "submit it to a queue that has one"}}
	if len(w.WorkerLabels) == 0 {
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

func flags(needs []string) string {
	var all, labels, runtimes []string
	for _, need := range needs {
		_, language := flow.OfferedLanguage(need)
		_, kind := flow.NeededKind(need)
		switch {
		case kind: // pawl worker has only the built-in kinds
		case strings.Contains(need, "="):
			labels = append(labels, need)
		case language:
			all = append(all, "--config …")
		default:
			runtimes = append(runtimes, runtimeFlag(need))
		}
	}
	if len(runtimes) > 0 {
		all = append(all, "--runtime "+strings.Join(runtimes, ","))
	}
	if len(labels) > 0 {
		all = append(all, "--labels "+strings.Join(labels, ","))
	}
	return strings.Join(all, " ")
}

// needContainers is the need of executions that run in any runtime with images.
const needContainers = string(flow.KindContainer)

func runtimeFlag(need string) string {
	if need == needContainers {
		return "sandbox,docker"
	}
	return need
}

// allOf describes the needs of a routing key.
func allOf(needs []string) string {
	all := make([]string, len(needs))
	for i, need := range needs {
		if kind, ok := flow.NeededKind(need); need == flow.NeedBuiltIns {
			all[i] = "the built-in kinds"
		} else if ok {
			all[i] = "a handler for kind " + string(kind)
		} else if name, ok := flow.OfferedLanguage(need); ok {
			all[i] = fmt.Sprintf("a profile of the language %q", name)
		} else if strings.Contains(need, "=") {
			all[i] = "label " + need
		} else if need == needContainers {
			all[i] = "a runtime for containers"
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
