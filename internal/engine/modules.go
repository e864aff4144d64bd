package engine

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/telemetry"
)

// module is one capability of the engine: what it adds to each transaction, and which loops it runs. Functions that it does not need are
// nil.
type module struct {
	name string
	// beforeWrite decides what belongs to the executions that are about to be written, which are those for which t.deferred is false, and
	// adds rows that the module has held back. It must not flush.
	beforeWrite hook
	// follow decides what follows from what has been written, and reports whether there was anything. What it has decided is written before
	// the first module is asked again.
	follow func(t *transaction, ctx context.Context) (more bool, err error)
	// atEnd decides what can be decided only when nothing follows any more. What it adds is written last.
	atEnd hook
	// committed is called after the commit, before the requests are answered.
	committed func(e *Engine, t *transaction)
	// loops run until their context ends.
	loops []loop
}

type (
	hook = func(t *transaction, ctx context.Context) error
	loop = func(e *Engine, ctx context.Context)
)

// modules are in the order in which each hook calls them. Three places matter: lines are served before workflows take steps, since a step
// may start what then waits in a line; the signal of an end has a lower number than that of a rule which pauses for this end; and the
// sweep is woken last. (Not a variable: the functions lead back to it.)
func modules() []module {
	return []module{
		{name: "definitions", committed: (*Engine).rememberDefinitions},
		{name: "lines", beforeWrite: (*transaction).writeShares, follow: (*transaction).admitLines, loops: []loop{(*Engine).sweepLines}},
		{name: "workflows", follow: (*transaction).advanceDue},
		{name: "sessions", committed: (*Engine).tellSessions, loops: []loop{(*Engine).sweepSessions}},
		{name: "retention", loops: []loop{(*Engine).sweepFinished, (*Engine).sweepOutdated, (*Engine).sweepUploads, (*Engine).sweepBlobs}},
		{name: "schedules", committed: (*Engine).keepSchedules, loops: []loop{(*Engine).sweepSchedules}},
		{
			name: "signals", beforeWrite: (*transaction).recordEnds, committed: (*Engine).tellEmitted,
			loops: []loop{(*Engine).sweepSignals, (*Engine).matchSignals},
		},
		{name: "rules", beforeWrite: (*transaction).pauseGone, committed: (*Engine).rereadPaused, loops: []loop{(*Engine).watchRules}},
		{name: "windows", beforeWrite: (*transaction).writeWindows, committed: (*Engine).tellWindows, loops: []loop{(*Engine).closeWindows}},
		{name: "cache", beforeWrite: (*transaction).keepOutcomes},
		{name: "questions", atEnd: (*transaction).writeInquiries},
		{name: "waits", atEnd: (*transaction).writeWaits, committed: (*Engine).tellMeetings, loops: []loop{(*Engine).meetWaits}},
		{name: "reruns", committed: (*Engine).carryCommitted, loops: []loop{(*Engine).carryReruns}},
		{name: "pauses", committed: (*Engine).keepPauses, loops: []loop{(*Engine).watchPauses}},
		{name: "lanes", committed: (*Engine).writtenLanes},
		{name: "follow-ups", committed: (*Engine).handInFollowUps},
		{name: "executions", committed: (*Engine).tellExecutions, loops: []loop{(*Engine).sweepDue}},
		{name: "replicas", loops: []loop{(*Engine).watchPending, (*Engine).watchPeers}},
	}
}

// hooks calls a hook of every module that has it, in order.
func (t *transaction) hooks(ctx context.Context, of func(*module) hook) error {
	for i := range t.e.modules {
		if decide := of(&t.e.modules[i]); decide != nil {
			if err := decide(t, ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow decides what follows from what has been written, of the first module for which there is anything.
func (t *transaction) follow(ctx context.Context) (more bool, err error) {
	for i := 0; i < len(t.e.modules) && !more && err == nil; i++ {
		if decide := t.e.modules[i].follow; decide != nil {
			more, err = decide(t, ctx)
		}
	}
	return more, err
}

func (t *transaction) atEnd(ctx context.Context) error {
	return t.hooks(ctx, func(m *module) hook { return m.atEnd })
}

// afterCommit does what may happen only after the commit.
func (e *Engine) afterCommit(t *transaction) {
	for i := range e.modules {
		if tell := e.modules[i].committed; tell != nil {
			tell(e, t)
		}
	}
}

// Loops are what Run runs side by side until ctx ends: the committers first, then what watches over them. A caller that needs to decide the
// order in which they begin, as a simulation does, calls Start and runs them itself.
func (e *Engine) Loops() []func(context.Context) {
	all := slices.Repeat([]func(context.Context){e.commitLoop}, e.opts.Committers)
	for i := range e.modules {
		for _, run := range e.modules[i].loops {
			all = append(all, func(ctx context.Context) { run(e, ctx) })
		}
	}
	return all
}

// pass is one pass of a loop. It returns the pause until the next one.
type pass = func(context.Context) (pause time.Duration, err error)

// repeat makes passes until ctx ends. wake ends a pause early (nil: nothing does). After an error, which is logged as one of what, the
// pause is again.
func (e *Engine) repeat(ctx context.Context, what string, again time.Duration, wake <-chan struct{}, next pass) {
	for {
		pause, err := next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			pause = again
			e.opts.Log.Error(what+" failed; it will be tried again", telemetry.Err, err)
		}
		if pause > 0 && !sleep(ctx, pause, wake) {
			return
		}
	}
}

// idleUnless is the pause of a loop that other commits wake, unless there is more to do.
func idleUnless(more bool) time.Duration {
	if more {
		return 0
	}
	return idleAtMost
}
