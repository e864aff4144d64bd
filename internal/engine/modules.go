package engine

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/engine/txn"
)

// newModules are the modules in the order of their hooks. Three places matter: wait lists are served before workflows take steps, because a
// step may start executions that join a wait list; the signal of an end has a lower number than the signal of a rule that pauses because of
// this end; and the sweep is woken last.
func (e *Engine) newModules() []txn.Module {
	return []txn.Module{
		{Name: "definitions", Committed: told(e.rememberDefinitions)},
		{Name: "lines", BeforeWrite: hook((*transaction).writeShares), Follow: follow((*transaction).admitWaitLists),
			Loops: loops{e.sweepWaitLists}},
		{Name: "workflows", Follow: follow((*transaction).advanceDue)},
		{Name: "sessions", Committed: told(e.tellSessions), Loops: loops{e.sweepSessions}},
		{Name: "retention", Loops: loops{e.sweepFinished, e.sweepOutdated, e.sweepUploads, e.sweepBlobs}},
		{Name: "schedules", Committed: told(e.keepSchedules), Loops: loops{e.sweepSchedules}},
		{
			Name: "signals", BeforeWrite: hook((*transaction).recordEnds), Committed: told(e.tellEmitted),
			Loops: loops{e.sweepSignals, e.matchSignals},
		},
		{Name: "rules", BeforeWrite: hook((*transaction).pauseGone), Committed: told(e.rereadPaused), Loops: loops{e.watchRules}},
		{Name: "windows", BeforeWrite: hook((*transaction).writeWindows), Committed: told(e.tellWindows), Loops: loops{e.closeWindows}},
		{Name: "cache", BeforeWrite: hook((*transaction).keepOutcomes)},
		e.inquiries.Module(),
		e.waits.Module(),
		{Name: "pauses", Committed: told(e.keepPauses), Loops: loops{e.watchPauses}},
		{Name: "routing keys", Committed: told(e.rememberRoutingKeys)},
		{Name: "follow-ups", Committed: told(e.handInFollowUps)},
		{Name: "executions", Committed: told(e.tellExecutions), Loops: loops{e.sweepDue}},
		{Name: "replicas", Loops: loops{e.watchPending, e.watchPeers}},
	}
}

type loops = []func(context.Context)

// hook, follow and told are the hooks of capabilities in this package, which see the whole transaction.
func hook(decide func(*transaction, context.Context) error) txn.Hook {
	return func(ctx context.Context, t txn.Tx) error { return decide(t.(*transaction), ctx) }
}

func follow(decide func(*transaction, context.Context) (bool, error)) func(context.Context, txn.Tx) (bool, error) {
	return func(ctx context.Context, t txn.Tx) (bool, error) { return decide(t.(*transaction), ctx) }
}

func told(tell func(*transaction)) func(txn.Tx) {
	return func(t txn.Tx) { tell(t.(*transaction)) }
}

// hooks calls a hook of every module that has it, in order.
func (t *transaction) hooks(ctx context.Context, hookOf func(*txn.Module) txn.Hook) error {
	for i := range t.e.modules {
		if decide := hookOf(&t.e.modules[i]); decide != nil {
			if err := decide(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow decides the follow-ups of the first module that has any.
func (t *transaction) follow(ctx context.Context) (more bool, err error) {
	for i := 0; i < len(t.e.modules) && !more && err == nil; i++ {
		if decide := t.e.modules[i].Follow; decide != nil {
			more, err = decide(ctx, t)
		}
	}
	return more, err
}

func (t *transaction) atEnd(ctx context.Context) error {
	return t.hooks(ctx, func(m *txn.Module) txn.Hook { return m.AtEnd })
}

// afterCommit performs the actions that must wait for the commit.
func (e *Engine) afterCommit(t *transaction) {
	for i := range e.modules {
		if tell := e.modules[i].Committed; tell != nil {
			tell(t)
		}
	}
}

// Loops are the loops that Run runs in parallel until ctx ends: the committers first, then the loops that watch over them. A caller that
// must choose their order, such as a simulation, calls Start and runs them itself.
func (e *Engine) Loops() []func(context.Context) {
	all := slices.Repeat(loops{e.commitLoop}, e.opts.Committers)
	for i := range e.modules {
		all = append(all, e.modules[i].Loops...)
	}
	return all
}
