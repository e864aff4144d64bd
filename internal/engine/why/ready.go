package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func (e *Explainer) ready(ctx context.Context, x *flow.Execution, w *Answer) error {
	ahead, err := e.Store.Ahead(ctx, x)
	if err != nil {
		return fmt.Errorf("count the queue: %w", err)
	}
	w.Position = ahead + 1
	paused, err := e.Engine.Paused(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(paused, func(p store.Pause) bool { return p.Of == store.PausedAction && p.Name == x.Action }); i >= 0 {
		w.Position = 0 // those of other actions go on
		w.paused(&paused[i], "")
		return nil
	}
	if _, held := flow.PausedAction(x.Queue); held {
		w.Position = 0
		w.Waiting, w.Summary = "paused", fmt.Sprintf("action %q was paused until now; the engine puts what waited for that back", x.Action)
		w.Unblock = []string{"nothing needs to be done: it goes on within seconds"}
		return nil
	}
	sessions, err := e.Store.LiveSessions(ctx)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	if i := slices.IndexFunc(paused, func(p store.Pause) bool { return p.Of == store.PausedQueue && p.Name == w.Queue }); i >= 0 {
		w.paused(&paused[i], fmt.Sprintf("; it is %s in line", ordinal(w.Position)))
		return nil
	}
	resting := func(s store.Session) *store.Pause {
		if i := slices.IndexFunc(paused, func(p store.Pause) bool { return p.Of == store.PausedWorker && p.Name == s.Name }); i >= 0 {
			return &paused[i]
		}
		return nil
	}
	slots := 0
	var rests []store.Pause     // of workers that could take it
	var serving []store.Session // that could take it
	var others []lacking
	var able []store.Session // that have the handler
	for _, s := range sessions {
		reach := flow.ReachOf(s.Queues, s.Kinds)
		if needs, ok := reach.Lacks(x.Queue); ok && len(needs) == 0 && resting(s) != nil {
			rests = append(rests, *resting(s))
		} else if ok && len(needs) == 0 {
			serving = append(serving, s)
			slots += s.Slots
		} else if ok {
			others = append(others, lacking{s, needs})
		}
		if slices.Contains(s.Kinds, w.Needs.Handler) {
			able = append(able, s)
		}
	}
	workers := len(serving)
	w.Workers, w.Slots = workers, slots
	for _, o := range others[:min(len(others), lackingShown)] {
		l := Lacking{Worker: o.Name}
		for _, need := range o.needs {
			l.Needs = append(l.Needs, allOf([]string{need}))
		}
		w.Lacking = append(w.Lacking, l)
	}
	where := fmt.Sprintf("queue %q", w.Queue)
	_, needs := flow.SplitLane(x.Queue)
	if workers == 0 && len(rests) > 0 {
		w.paused(&rests[0], fmt.Sprintf(", and no other worker serves %s; it is %s in line", where, ordinal(w.Position)))
		rests = rests[1:]
	}
	for i := range rests {
		w.Facts = append(w.Facts, pauseText(&rests[i]))
	}
	switch {
	case w.Waiting == "paused":
		return nil
	case workers == 0 && w.Needs.Handler != "" && !slices.ContainsFunc(others, func(o lacking) bool { return slices.Contains(o.Kinds, w.Needs.Handler) }):
		w.unhandled(where, needs, len(others), able)
		return nil
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
	held, err := e.whoHolds(ctx, serving)
	if held != "" {
		w.Facts = append(w.Facts, held)
	}
	return err
}

// lackingShown is how many workers an answer lists that could not take an execution.
const lackingShown = 10

// unhandled says that no worker of a queue has the handler that is needed, and which of other queues have it.
func (w *Answer) unhandled(where string, needs []string, serving int, able []store.Session) {
	w.Waiting = "worker"
	rest := slices.DeleteFunc(slices.Clone(needs), func(need string) bool { _, kind := flow.NeededKind(need); return kind })
	switch {
	case len(able) == 0:
		w.Summary = fmt.Sprintf("no live worker has a handler for kind %s; it is %s in line", w.Needs.Handler, ordinal(w.Position))
	case serving == 0:
		w.Summary = fmt.Sprintf("no live worker serves %s; it is %s in line", where, ordinal(w.Position))
	default:
		w.Summary = fmt.Sprintf("no live worker of %s has a handler for kind %s (%d %s it without); it is %s in line", where, w.Needs.Handler, serving, serve(serving), ordinal(w.Position))
	}
	w.Unblock = []string{fmt.Sprintf("start a program that serves handler %q on %s (package handler)", w.Needs.Handler, where)}
	if len(rest) > 0 {
		w.Unblock[0] += " and has " + allOf(rest)
	}
	const few = 3
	for _, s := range able[:min(few, len(able))] {
		w.Facts = append(w.Facts, fmt.Sprintf("worker %s has it, and serves %s %s", s.Name, plural(len(s.Queues), "queue"), strings.Join(s.Queues, ", ")))
	}
}

// lacking is a worker of the right queue that does not have all that is needed.
type lacking struct {
	store.Session
	needs []string
}

// unmet says that none of the workers of a queue has what is needed, and which comes nearest.
func (w *Answer) unmet(where string, needs []string, others []lacking) {
	w.Waiting = "worker"
	runs := func(o lacking) bool { return !slices.Contains(o.needs, flow.NeedBuiltIns) }
	if !slices.ContainsFunc(others, runs) {
		needs = append(needs, flow.NeedBuiltIns)
	}
	w.Summary = fmt.Sprintf("no live worker of %s has %s (%d %s it without); it is %s in line", where, allOf(needs), len(others), serve(len(others)), ordinal(w.Position))
	near := slices.MinFunc(others, func(a, b lacking) int { return len(a.needs) - len(b.needs) })
	how := fmt.Sprintf("pawl worker --queues %s %s", w.Queue, flags(needs))
	if w.Needs.Handler != "" {
		how = "package handler"
	}
	w.Unblock = []string{fmt.Sprintf("start a worker of %s that has %s (%s), or submit it to a queue that has one", where, allOf(needs), strings.TrimSpace(how))}
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
	var all, labels, runtimes []string
	for _, need := range needs {
		_, language := flow.OfferedLanguage(need)
		_, kind := flow.NeededKind(need)
		switch {
		case kind: // pawl worker has the built-in kinds, and no others
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

// needContainers is the need of what runs in whichever runtime has images.
const needContainers = string(flow.KindContainer)

// runtimeFlag is what --runtime takes for a need.
func runtimeFlag(need string) string {
	if need == needContainers {
		return "sandbox,docker"
	}
	return need
}

// allOf says what a lane is for.
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
