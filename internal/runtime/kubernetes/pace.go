package kubernetes

import (
	"sync"
	"time"
)

const (
	// paceFirst is how long after a pod has got its node its keeper is tried for the first time, until the worker has seen some pods start.
	paceFirst = 500 * time.Millisecond
	// paceShare is the part of the usual time after which a keeper is tried. Below 1, so that the usual time can become shorter.
	paceShare = 0.9
	// paceWeight is the weight of the latest pod in the usual time.
	paceWeight = 0.2
	// paceTries is how many tries there are before the kubelet has told of the keeper: one where other pods start at the
	// same time, since how long that takes then says little. paceRarely is the pause after the last of them, for a kubelet
	// that never reports the keeper, and startsApart times the pods that start where that is longer: on a node that took
	// minutes to start 20 at once each asked in vain every 20 s.
	paceTries  = 2
	paceRarely = 20 * time.Second
	// paceVain is how many of the pods that start beside others are tried early, and then every paceProbe-th, until one
	// meets its keeper: of 20 pods at once on one node hardly any does, which may be otherwise where each of many nodes
	// starts one.
	paceVain  = 5
	paceProbe = 10
	// dialFirst and dialMost are the pauses between tries of a keeper that runs and does not answer.
	dialFirst = 60 * time.Millisecond
	dialMost  = time.Second
	// eventsAfter is how long a pod may be on its node without a word until the cluster's events are asked for one, and
	// then every eventsEvery. Where n others start it is n times startsApart later, and no more often than one of all in
	// startsApart: 500 pods on a slow node, which take ten minutes, would ask 5,000 times, and so they ask 200 times.
	eventsAfter = 20 * time.Second
	eventsEvery = time.Minute
	startsApart = 3 * time.Second
)

// pace says when the worker tries to reach a keeper by an exec. The kubelet reports a container's start up to a second
// late, and an exec that comes too early costs a request that the API server and the kubelet refuse. So the first tries
// come when keepers of this cluster usually answer, and the next one when the kubelet has reported the keeper.
type pace struct {
	mu    sync.Mutex
	usual time.Duration // from the pod's node to the keeper's answer
	open  int           // pods that start
	early int           // pods beside others that were tried early since a try met its keeper before the kubelet had reported it
	spare int           // pods that were to go without one
}

// tries are those of one pod.
type tries struct {
	pace   *pace
	placed time.Time
	next   time.Time     // when the worker opens the next exec to the keeper, also if the kubelet has not reported it as running
	left   int           // how many execs are left before the kubelet has reported the keeper as running
	told   bool          // the kubelet has reported the keeper as running
	wait   time.Duration // the pause after the next exec
	events time.Time     // when the events of the pod are to be asked for
}

// begin is for a pod that has just got its node.
func (p *pace) begin(placed time.Time) *tries {
	p.mu.Lock()
	defer p.mu.Unlock()
	usual, left := p.usual, paceTries
	if usual == 0 {
		usual = paceFirst
	}
	first := time.Duration(paceShare * float64(usual))
	events := placed.Add(eventsAfter + time.Duration(p.open)*startsApart)
	if p.open++; p.open > 1 {
		left = 1
		if p.early < paceVain {
			p.early++
		} else if p.spare++; p.spare%paceProbe != 0 {
			left, first = 0, p.rarely()
		}
	}
	return &tries{pace: p, placed: placed, left: left, next: placed.Add(first), wait: max(usual/2, dialFirst), events: events}
}

// due reports whether the keeper is to be tried now; runs is what the kubelet has told of it.
func (t *tries) due(now time.Time, runs bool) bool {
	if runs && !t.told {
		t.told, t.wait = true, dialFirst
		return true
	}
	return !now.Before(t.next)
}

// failed notes a try that the keeper did not answer.
func (t *tries) failed(now time.Time) {
	t.left--
	switch {
	case t.told:
		t.next = now.Add(t.wait)
		t.wait = min(t.wait+t.wait/2, dialMost)
	case t.left > 0:
		t.next = now.Add(t.wait)
	default:
		t.pace.mu.Lock()
		defer t.pace.mu.Unlock()
		t.next = now.Add(t.pace.rarely())
	}
}

// rarely is the pause before a try of a keeper that the kubelet has not reported. The caller holds the lock.
func (p *pace) rarely() time.Duration { return max(paceRarely, time.Duration(p.open)*startsApart) }

// asksEvents reports whether the events of a pod whose keeper does not run are to be asked for now, and takes it that they are.
func (t *tries) asksEvents(now time.Time) bool {
	if now.Before(t.events) {
		return false
	}
	p := t.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	t.events = now.Add(max(eventsEvery, time.Duration(p.open)*startsApart))
	return true
}

// end is for a pod whose keeper has answered a try at a moment, or that will not start; then the moment is zero.
func (t *tries) end(answered time.Time) {
	p := t.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	if answered.IsZero() {
		return
	}
	if !t.told {
		p.early = 0
	}
	took := min(answered.Sub(t.placed), 10*time.Second) // an image that was pulled says little of the next pod
	if p.usual == 0 {
		p.usual = took
		return
	}
	p.usual += time.Duration(paceWeight * float64(took-p.usual))
}
