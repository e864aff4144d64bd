package kubernetes

import (
	"cmp"
	"sync"
	"time"
)

const (
	// paceFirst is the delay between a pod's assignment to a node and the first try of its keeper, until the worker has seen some
	// pods start.
	paceFirst = 500 * time.Millisecond
	// paceShare is the part of the usual start time after which a keeper is tried. It is below 1 so that the usual time can become shorter.
	paceShare = 0.9
	// paceWeight is the weight of the latest pod in the usual start time.
	paceWeight = 0.2
	// paceTries is the number of tries before the kubelet has reported the keeper; it is one where other pods start at the
	// same time, because the usual time then says little. paceRarely is the pause after the last of them, for a kubelet
	// that never reports the keeper; where the number of starting pods times startsApart is longer, that is the pause: on
	// a node that took minutes to start 20 pods, each pod asked in vain every 20 s.
	paceTries  = 2
	paceRarely = 20 * time.Second
	// paceVain of the pods that start beside others are tried early, and then every paceProbe-th, until one try reaches its
	// keeper: of 20 pods at once on one node hardly any is reached, but where each of many nodes starts one pod most may be.
	paceVain  = 5
	paceProbe = 10
	// dialFirst and dialMost are the shortest and longest pause between tries of a keeper that runs and does not answer.
	dialFirst = 60 * time.Millisecond
	dialMost  = time.Second
	// eventsAfter is how long a pod may be on its node without a report until the worker asks for its events, and then
	// every eventsEvery. With n starting pods the first request comes n·startsApart later, and there is at most one
	// request per startsApart: 500 pods on a slow node, which take ten minutes, would make 5,000 requests, and make 200.
	eventsAfter = 20 * time.Second
	eventsEvery = time.Minute
	startsApart = 3 * time.Second
)

// pace decides when the worker tries to reach a keeper by an exec. The kubelet reports a container's start up to a second late, and an
// exec that comes too early costs a request that the API server and the kubelet refuse. So the first tries come when keepers of this
// cluster usually answer, and the next try when the kubelet has reported the keeper.
type pace struct {
	mu    sync.Mutex
	usual time.Duration // from the assignment to a node to the keeper's answer
	open  int           // pods that start
	early int           // pods beside others that were tried early since a try last reached its keeper before the kubelet's report
	spare int           // pods beside others after those of early; every paceProbe-th is tried early
}

// tries is the schedule of one pod.
type tries struct {
	pace   *pace
	placed time.Time
	next   time.Time     // when the worker opens the next exec to the keeper, also if the kubelet has not reported it as running
	left   int           // how many execs are left before the kubelet has reported the keeper as running
	told   bool          // the kubelet has reported the keeper as running
	wait   time.Duration // the pause after the next exec
	events time.Time     // when the worker asks for the pod's events
}

// begin returns the schedule of a pod that was just assigned to a node.
func (p *pace) begin(placed time.Time) *tries {
	p.mu.Lock()
	defer p.mu.Unlock()
	usual, left := cmp.Or(p.usual, paceFirst), paceTries
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

// due reports whether the keeper is to be tried now; runs is whether the kubelet has reported it as running.
func (t *tries) due(now time.Time, runs bool) bool {
	if runs && !t.told {
		t.told, t.wait = true, dialFirst
		return true
	}
	return !now.Before(t.next)
}

// failed records a try that the keeper did not answer.
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

// rarely is the pause before a try of a keeper that the kubelet has not reported as running. The caller holds the lock.
func (p *pace) rarely() time.Duration { return max(paceRarely, time.Duration(p.open)*startsApart) }

// asksEvents reports whether the worker is to ask for the events of a pod whose keeper does not run, and schedules the next request.
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

// end records the start of a pod whose keeper answered a try at a moment; a zero moment means that the pod will not start.
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
	took := min(answered.Sub(t.placed), 10*time.Second) // the pull of an image says little about the next pod
	if p.usual == 0 {
		p.usual = took
		return
	}
	p.usual += time.Duration(paceWeight * float64(took-p.usual))
}
