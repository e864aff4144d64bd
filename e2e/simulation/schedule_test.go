package simulation

import (
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// plan is what a seed draws before the run starts: the size of the world and the number of faults.
type plan struct {
	Engines, Workers, Slots int
	Committers              int  // of each engine
	Solo                    bool // one engine with its workers in the same process
	Remote                  bool // workers speak HTTP
	Broker                  bool // workers and engines speak through a broker
	Calls                   int  // how many calls of each kind a worker has under way
	Slow                    int  // how many times longer slow work takes than other work
	Ops                     int  // what clients do
	Horizon                 time.Duration
	Retention               time.Duration
	Rows                    int           // rows that one transaction creates, admits and ends beyond its requests; 0 for the default
	Wide                    int           // number of children from which on the engine follows a workflow by its changes; 0 for the default
	skew                    time.Duration // the database's clock, ahead of the engines'

	// Refused is the chance that the database refuses every child of a workflow's attempt, or that the decision about one panics.
	Refused float64
	// With Reacts clients also emit signals, run workflows that wait for them, and answer questions.
	Reacts bool
	// With Reruns clients also rerun what has ended, and move aliases.
	Reruns bool
	// With Rounds most submitted workflows have a task that runs in rounds.
	Rounds bool
	// With Caches many of them have tasks whose outcomes are cached.
	Caches bool
	// With Wraps many of them have a workflow as a task, and paths of reruns lead into it.
	Wraps bool
	// Beat is the number of one of beats, from 1 on: the world has schedules, and providers send to a webhook. 0 means none. Beat needs
	// Reacts.
	Beat int

	// Forge is the chance that a process without the session's secret forges a copy of a report in the broker.
	Forge float64

	// Chances per gate.
	Lose, Double, Chop, Again        float64
	Conflict, Refuse, Unknown, Crash float64
	Hole                             float64 // per attempt: an event that never leaves the worker
	Disaster                         float64 // per step: something bigger happens
	Calm                             float64 // chance of opening a gate rather than letting time pass
}

func draw(r *rand.Rand) plan {
	some := func(chance, most float64) float64 {
		if r.Float64() < chance {
			return r.Float64() * most
		}
		return 0
	}
	p := plan{
		Engines: 1 + r.IntN(3), Workers: 1 + r.IntN(3), Slots: 1 + r.IntN(3), Slow: 40,
		Ops: 5 + r.IntN(9), Horizon: time.Duration(20+r.IntN(50)) * time.Second,
		Lose: some(0.6, 0.12), Double: some(0.6, 0.15), Chop: some(0.5, 0.3), Again: some(0.3, 0.2),
		Conflict: some(0.4, 0.1), Refuse: some(0.3, 0.05), Unknown: some(0.4, 0.05), Crash: some(0.5, 0.02),
		Hole: some(0.2, 0.2), Disaster: some(0.7, 0.01), Calm: 0.8 + 0.19*r.Float64(),
	}
	switch r.IntN(4) {
	case 0:
		p.Solo, p.Engines = true, 1
	case 1:
		p.skew = time.Duration(r.IntN(120)-60) * time.Second
	}
	p.Remote = !p.Solo && r.IntN(3) == 0
	if p.Committers = 1; r.IntN(2) == 0 {
		p.Committers += 1 + r.IntN(2)
	}
	if p.Calls = 1; !p.Remote {
		p.Calls += r.IntN(2)
	}
	if r.IntN(2) == 0 {
		p.Retention = time.Duration(5+r.IntN(20)) * time.Second
	}
	if r.IntN(3) == 0 {
		p.Rows = 1 + r.IntN(4)
	}
	if r.IntN(3) > 0 {
		p.Wide = 1 + r.IntN(4)
	}
	return p
}

// mostDelay bounds how long a message or a commit is under way. It is shorter than the part of a lease between the worker's giving up and
// the engine's taking back. Gates that no call waits for may take mostLate.
const (
	mostDelay = 4 * time.Second
	mostLate  = 45 * time.Second
)

// chaos runs the world with faults.
func (w *world) chaos() {
	for time.Since(w.began) < w.plan.Horizon && !w.isBroken() && w.steps < mostSteps {
		gs := w.waiting()
		if len(gs) > 0 && w.rng.Float64() < w.plan.Calm {
			g := gs[w.rng.IntN(len(gs))]
			w.release(g, w.judgeGate(g))
			continue
		}
		if w.rng.Float64() < w.plan.Disaster*5 {
			w.disaster()
			continue
		}
		if w.rng.IntN(6) == 0 && w.load.next() {
			continue
		}
		if w.rng.IntN(12) == 0 {
			w.peek()
			continue
		}
		w.pass(gs)
	}
	for w.load.next() {
		w.waiting()
	}
}

// mostSteps bounds a run in any case.
const mostSteps = 60_000

// pass lets time pass, unless a gate has waited for too long.
func (w *world) pass(gs []*gate) {
	d := time.Duration(w.rng.IntN(20_000_000))
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		d = time.Duration(w.rng.IntN(1_000_000_000))
	case 3:
		d = time.Duration(w.rng.IntN(3_500_000_000))
	}
	for _, g := range gs {
		most := mostDelay
		if g.late {
			most = mostLate
		}
		if time.Since(g.since)+d > most {
			w.release(g, w.judgeGate(g))
			return
		}
	}
	time.Sleep(d)
}

// judgeGate draws what happens at a gate.
func (w *world) judgeGate(g *gate) verdict {
	p, dice := &w.plan, w.rng.Float64()
	less := func(chance float64) bool {
		if dice < chance {
			return true
		}
		dice -= chance
		return false
	}
	if g.at != nil && g.at.isCut() {
		return verdict{do: lose}
	}
	switch g.kind {
	case atCommit:
		switch {
		case time.Now().Before(w.outage):
			return verdict{do: refuse}
		case less(p.Conflict):
			return verdict{do: conflict}
		case less(p.Refuse):
			return verdict{do: refuse}
		case less(p.Unknown):
			return verdict{do: unknown}
		case less(p.Crash / 2):
			return verdict{do: crashFirst}
		case less(p.Crash / 2):
			return verdict{do: crashAfter}
		}
	case atRequest:
		v := verdict{to: w.anyReplica(g)}
		switch {
		case w.plan.Solo && g.at != nil:
		case less(p.Lose):
			v.do = lose
		case less(p.Double):
			v.do = double
		case less(p.Chop):
			v.do = chop
		}
		return v
	case atSend:
		switch {
		case less(p.Lose / 2):
			return verdict{do: lose}
		case less(p.Double):
			return verdict{do: double}
		case less(p.Refuse):
			return verdict{do: refuse}
		case less(p.Unknown):
			return verdict{do: unknown}
		case less(p.Chop / 10):
			return verdict{do: busy}
		}
	case atLineMessage:
		v := verdict{to: w.anyReplica(g)}
		switch {
		case less(p.Lose / 4):
			v.do = lose
		case less(p.Again / 2):
			v.do = double
		}
		return v
	case atReply:
		switch {
		case less(p.Lose / 2):
			return verdict{do: lose}
		case less(p.Again):
			return verdict{do: again}
		}
	case atAnswer:
		switch {
		case w.plan.Solo && g.at != nil:
		case less(p.Lose):
			return verdict{do: lose}
		case less(p.Again):
			return verdict{do: again}
		}
	}
	return verdict{}
}

// anyReplica returns where the load balancer, or the broker, sends the request at a gate, and nil when no replica is up.
func (w *world) anyReplica(g *gate) *replica {
	up := w.reachable(g)
	if len(up) == 0 {
		return nil
	}
	return up[w.rng.IntN(len(up))]
}

// reachable returns the replicas that the request at a gate can go to.
func (w *world) reachable(g *gate) []*replica {
	var up []*replica
	for _, r := range w.replicas {
		if r.isUp() && (g.fits == nil || g.fits(r)) {
			up = append(up, r)
		}
	}
	return up
}

// disaster lets one fault happen to whole processes.
func (w *world) disaster() {
	if w.broker != nil && w.rng.IntN(3) == 0 {
		w.broker.disaster()
		synctest.Wait()
		w.revive()
		return
	}
	switch w.rng.IntN(9) {
	case 0, 1:
		r := w.replicas[w.rng.IntN(len(w.replicas))]
		if r.isUp() {
			w.happen("crash %s", r.name())
			r.crash()
		}
	case 2:
		r := w.replicas[w.rng.IntN(len(w.replicas))]
		if r.isUp() && !w.plan.Solo {
			w.happen("stop %s", r.name())
			r.retire()
		}
	case 3, 4:
		if h := w.hosts[w.rng.IntN(len(w.hosts))]; h.isAlive() && !w.plan.Solo {
			w.happen("kill %s", h.name())
			h.kill()
		}
	case 5:
		if h := w.hosts[w.rng.IntN(len(w.hosts))]; h.isAlive() {
			w.happen("stop %s", h.name())
			h.drain()
		}
	case 6:
		if h := w.hosts[w.rng.IntN(len(w.hosts))]; h.isAlive() && !w.plan.Solo {
			w.happen("freeze %s", h.name())
			h.freeze(time.Duration(float64(45*time.Second) * w.rng.Float64() * w.rng.Float64()))
		}
	case 7:
		if h := w.hosts[w.rng.IntN(len(w.hosts))]; h.isAlive() && !w.plan.Solo {
			w.happen("cut off %s", h.name())
			h.cut(time.Duration(w.rng.IntN(50)) * time.Second)
		}
	case 8:
		w.happen("the database goes away")
		w.outage = time.Now().Add(time.Duration(w.rng.IntN(15)) * time.Second)
	}
	synctest.Wait()
	w.revive()
}

func (w *world) happen(format string, args ...any) {
	w.shadow.faults["disaster"]++
	w.note(format, args...)
}

// revive starts some of the processes that are down.
func (w *world) revive() {
	for _, r := range w.replicas {
		if r.isDown() && (w.isHealed() || w.rng.IntN(2) == 0) {
			w.note("start %s", r.place)
			r.start()
			synctest.Wait()
		}
	}
	for _, h := range w.hosts {
		if h.isDown() && (w.isHealed() || w.rng.IntN(2) == 0) {
			w.note("start %s", h.place)
			h.start()
			synctest.Wait()
		}
	}
}

func (w *world) populate() {
	for i := range w.plan.Engines {
		r := &replica{w: w, place: "e" + string(rune('1'+i))}
		w.replicas = append(w.replicas, r)
		r.start()
		synctest.Wait()
	}
	for i := range w.plan.Workers {
		h := &host{w: w, place: "w" + string(rune('1'+i))}
		h.skew = time.Duration((w.noise("skew", i) - 0.5) * float64(10*time.Minute))
		w.hosts = append(w.hosts, h)
		h.start()
		synctest.Wait()
	}
	// Definitions come first, because faults may happen from here on.
	w.load.define()
}

// recoveryBound is the time after the last fault within which everything must have ended: every timeout and pause of the load, several
// leases, sweeps and polls.
const recoveryBound = 15 * time.Minute

// heal ends the faults and lets everything come to its end.
func (w *world) heal() {
	w.note("healed")
	w.mu.Lock()
	w.healed = true
	w.mu.Unlock()
	w.outage = time.Time{}
	if w.broker != nil {
		w.broker.heal()
	}
	for _, h := range w.hosts {
		h.cut(0)
		h.thaw()
		synctest.Wait()
	}
	healed := time.Now()
	for !w.isBroken() {
		gs := w.waiting()
		w.revive()
		if len(gs) > 0 {
			g := gs[w.rng.IntN(len(gs))]
			v := verdict{}
			if g.kind == atRequest || g.kind == atLineMessage {
				v.to = w.anyReplica(g)
			}
			w.release(g, v)
			continue
		}
		if w.load.quiet() && w.shadow.open() == 0 && w.beatsOver() && w.windowsClosed() && len(w.newSignals()) == 0 {
			return
		}
		if since := time.Since(healed); since > recoveryBound || w.steps > 2*mostSteps {
			w.stuck(since)
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// stuck reports what did not end.
func (w *world) stuck(since time.Duration) {
	for _, s := range w.newSignals() {
		w.violate(41, "no rule was asked about %s within %s", s.ID.Text(flow.SignalPrefix), since)
	}
	for _, r := range w.shadow.inOrder() {
		if r.x.Place != flow.Finished {
			w.note("still open: %s (child %q of %s): %+v", name(r.id), r.x.Task, name(r.x.Parent), r.x.State)
		}
	}
	for _, r := range w.shadow.inOrder() {
		if r.x.Place == flow.Finished {
			continue
		}
		number := 34
		if r.x.Cancel != nil || r.cancelled {
			number = 23
		}
		w.violate(number, "%s (%s %s) is still %s in place %s, attempt %d, owner %s, inbox %d, %s after the last fault", name(r.id),
			r.x.Action, r.x.Task, r.x.Stage, r.x.Place, r.x.Attempt, name(r.x.Owner), r.x.Inbox, since)
		return
	}
	w.violate(34, "clients still wait %s after the last fault: %v", since, w.load.unanswered())
}
