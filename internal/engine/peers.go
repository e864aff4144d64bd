package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// pollEvery is the default of Options.Poll.
	pollEvery = 500 * time.Millisecond
	// ordersPoll is how many polls lie between two checks for orders to one session: many sessions may be waiting, and
	// each renewal brings the outstanding orders.
	ordersPoll = 4
	// heardPoll is how many polls lie at least between two checks while notifications arrive, which announce nearly everything.
	heardPoll = 4
	// gatherAll is how long notifications that name no execution are gathered: under load there are hundreds a
	// second, and each makes every watcher look.
	gatherAll = 100 * time.Millisecond
	// listenAgain is how long this replica only polls before it tries to listen to the others again.
	listenAgain = 10 * time.Second
)

// watchPeers notices changes of other replicas: at once if the store passes on notifications, and by periodic reads in any case. A replica
// with a store of its own needs neither.
func (e *Engine) watchPeers(ctx context.Context) {
	if e.opts.Exclusive {
		return
	}
	notes := e.listen(ctx)
	listen := time.NewTimer(listenAgain)
	defer listen.Stop()
	poll := time.NewTimer(e.jittered(e.opts.Poll))
	defer poll.Stop()
	var all <-chan time.Time // fires when all watchers must look again
	var orders time.Time     // when the sessions last looked
	for {
		select {
		case n, open := <-notes:
			if !open {
				notes = nil
				e.notified.Store(false)
				listen.Reset(listenAgain)
				poll.Reset(e.jittered(e.opts.Poll))
				continue
			}
			e.onNotification(ctx, n)
			if n.All && all == nil {
				all = time.After(gatherAll)
			}
		case <-all:
			all = nil
			e.watch.broadcast()
			if now := time.Now(); now.Sub(orders) > ordersPoll*e.opts.Poll {
				orders = now
				e.sessions.orderAll()
			}
		case <-poll.C:
			if notes == nil { // otherwise watchPending does it
				e.forgetQueues()
				poll.Reset(e.jittered(e.opts.Poll))
			}
		case <-listen.C:
			if notes == nil {
				notes = e.listen(ctx)
				listen.Reset(listenAgain)
			}
		case <-ctx.Done():
			return
		}
	}
}

// listen begins to listen to other replicas; nil if that is not possible now, or at all.
func (e *Engine) listen(ctx context.Context) <-chan store.Notification {
	n, ok := e.opts.Store.(store.Notifier)
	if !ok {
		return nil
	}
	notes, err := n.Notifications(ctx)
	if err != nil {
		e.opts.Log.Debug("no notifications of other replicas: looking now and then", telemetry.Err, err)
		return nil
	}
	e.notified.Store(true)
	return notes
}

// onNotification wakes the sessions and watchers that a notification names, and records the queues. The poll finds what a notification
// omits.
func (e *Engine) onNotification(ctx context.Context, n store.Notification) {
	if len(n.Queues) > 0 {
		for _, q := range n.Queues {
			if flow.Narrow(q) {
				e.rememberRoutingKey(q) // with the execution that was put into it
			}
		}
		e.mu.Lock()
		for _, q := range n.Queues {
			e.claimers.queues.filled(q)
		}
		waiting := len(e.claimers.waiting) > 0
		e.mu.Unlock()
		if waiting {
			e.wakeCommitter()
		}
	}
	if n.Pauses {
		e.pausesChanged(ctx)
	}
	for _, id := range n.Sessions {
		e.sessions.order(id)
	}
	e.watch.changedByPeers(n.Executions)
}

// forgetQueues lets the next batch look into the queues of all waiting claimers: another replica may have filled one.
func (e *Engine) forgetQueues() {
	e.mu.Lock()
	e.claimers.forget()
	waiting := len(e.claimers.waiting) > 0
	e.mu.Unlock()
	if waiting {
		e.wakeCommitter()
	}
}

// orderPoll fires when a session that waits for orders should check for some that this replica was not notified of.
func (e *Engine) orderPoll() <-chan time.Time {
	if e.opts.Exclusive || e.notified.Load() {
		return nil
	}
	return time.After(e.jittered(ordersPoll * e.opts.Poll))
}
