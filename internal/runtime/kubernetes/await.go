package kubernetes

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

const (
	// quietFor is how long a keeper may be silent before Spec.Note reports it; a keeper answers every ping.
	quietFor = 10 * time.Second
	// lookEvery is the interval at which the worker checks for a silent keeper.
	lookEvery = 2 * time.Second
	// settled is how long a stream may be broken before the cluster's view of the pod decides.
	settled = 3 * time.Second
)

// await keeps a stream to the keeper open until done accepts the keeper's state, and forwards the order to end the run.
func (n *run) await(done func(wire.State) bool) error {
	var away time.Time // since when there has been no stream
	var heard time.Time
	var told *link    // the link over which the end was ordered
	toldKill := false // whether that order was a kill
	deleted := false  // by this run
	pause := 50 * time.Millisecond
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		state, changed := n.now()
		if done(state) {
			return nil
		}
		l := n.current()
		if away.IsZero() {
			pause = 50 * time.Millisecond
		}
		pod, gone, podChanged := n.runtime.watcher.look(n.name)
		if away.IsZero() {
			heard = l.lastHeard()
		}
		quiet := time.Since(heard) > quietFor
		switch {
		case state.Phase == wire.Lost:
			return n.lost()
		case state.Phase == wire.Broken:
			return fmt.Errorf("%w: the keeper of pod %s was started again, and the output is lost with it", errInfra, n.name)
		case gone:
			return n.taken(pod, "is gone")
		case quiet && overdue(pod):
			return n.taken(pod, fmt.Sprintf("has not answered since %s, and the cluster has given it up", heard.UTC().Format("15:04:05Z")))
		case state.Phase == wire.Exited && pod != nil && over(pod):
			return n.taken(pod, "ended before the program's files had come")
		case pod != nil && pod.DeletionTimestamp != nil && !deleted:
			n.end(verdict.Ending{Verdict: runtime.InfraError, Reason: n.taken(pod, "was deleted or evicted while it ran").Error()})
		case !away.IsZero() && time.Since(away) > n.runtime.settled && pod != nil && over(pod):
			return n.taken(pod, "ended while its keeper was out of reach")
		case !away.IsZero() && time.Since(away) > n.runtime.giveUp():
			return n.abandon(l.err)
		}
		if quiet {
			n.say(quietly(n.name, pod, heard))
		} else {
			n.say("")
		}
		// A program that has exited need not be ended. Its files are still in the pod, so a pod out of reach is not deleted.
		if closed(n.endedAt) && state.Phase != wire.Exited {
			kill := closed(n.killAt)
			if away.IsZero() && (told != l || kill && !toldKill) {
				told, toldKill = l, kill
				order := wire.Frame{Kind: wire.Kill}
				if !kill {
					order.Offset = max(int64(time.Until(n.until)), 1)
				}
				go func() { _ = l.send(order) }() // if it fails, the order is sent over the next stream
			}
			if kill && !deleted && !away.IsZero() && time.Since(away) > n.runtime.settled {
				deleted = n.delete() == nil
			}
		}
		var broke <-chan struct{}
		var again <-chan time.Time
		ended := n.endedAt
		if closed(ended) {
			ended = n.killAt
		}
		if closed(ended) {
			ended = nil
		}
		if away.IsZero() {
			broke = l.over
		} else {
			again = time.After(pause)
		}
		select {
		case <-changed:
			away = time.Time{}
		case <-podChanged:
		case <-ended:
		case <-broke:
			away = time.Now()
		case <-look.C:
		case <-again:
			pause = min(2*pause, time.Second)
			if err := n.reconnect(); err == nil {
				away = time.Time{}
			}
		}
	}
}

// reconnect tries once, and returns when the keeper has answered or has failed to answer. It does not wait for a
// program that is to be ended: its pod can be deleted.
func (n *run) reconnect() error {
	state, changed := n.now()
	l, err := n.connect()
	if err != nil {
		return err
	}
	ended := n.endedAt
	var late <-chan time.Time
	if _, ok := n.ended.Get(); ok {
		ended = nil
		if state.Phase != wire.Exited {
			late = time.After(n.runtime.settled)
		}
	}
	for {
		pod, gone, podChanged := n.runtime.watcher.look(n.name)
		if gone || overdue(pod) {
			l.cancel() // a lost node neither accepts nor refuses a connection
		}
		select {
		case <-changed:
			if n.feed != nil {
				n.feed.again(l)
			}
			return nil
		case <-l.over:
			return l.err
		case <-podChanged:
		case <-ended:
			ended = nil
			l.cancel()
		case <-late:
			l.cancel()
		}
	}
}
