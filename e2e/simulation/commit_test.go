package simulation

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

// commit is one transaction that the shadow judges.
type commit struct {
	by string // the life of the engine
	*shadow
	now     time.Time
	touched map[*row]flow.Place // and their places before the transaction
	entered map[flow.ID]int64   // when those entered that place
	changed []*row              // in order
	said    []string
	items   []place // that were created, in order
}

// lifecycle is the table of docs/states.md, written independently a second time.
var lifecycle = map[flow.EventType]map[flow.Stage]flow.Stage{
	flow.EvRequested:    {0: flow.Requested, flow.Failed: flow.Requested, flow.TimedOut: flow.Requested, flow.Provisioning: flow.Requested, flow.Running: flow.Requested},
	flow.EvScheduled:    {flow.Requested: flow.Scheduled},
	flow.EvProvisioning: {flow.Scheduled: flow.Provisioning},
	flow.EvRunning:      {flow.Provisioning: flow.Running},
	flow.EvCompleted:    {flow.Running: flow.Completed},
	flow.EvFailed:       {flow.Provisioning: flow.Failed, flow.Running: flow.Failed},
	flow.EvCancelled:    {flow.Requested: flow.Cancelled, flow.Scheduled: flow.Cancelled, flow.Provisioning: flow.Cancelled, flow.Running: flow.Cancelled},
	flow.EvTimedOut:     {flow.Requested: flow.TimedOut, flow.Scheduled: flow.TimedOut, flow.Provisioning: flow.TimedOut, flow.Running: flow.TimedOut},
	flow.EvReused:       {flow.Requested: flow.Completed},
	flow.EvOverridden:   {flow.Requested: flow.Completed},
	flow.EvWaiting:      {flow.Requested: flow.Requested},
	flow.EvLost:         {flow.Provisioning: flow.Provisioning, flow.Running: flow.Running},
	flow.EvAdvanced:     {flow.Running: flow.Running},
	flow.EvPaused:       {flow.Requested: flow.Requested, flow.Scheduled: flow.Scheduled, flow.Running: flow.Running},
	flow.EvResumed:      {flow.Requested: flow.Requested, flow.Scheduled: flow.Scheduled, flow.Running: flow.Running},
	flow.EvProgress:     {flow.Provisioning: flow.Provisioning, flow.Running: flow.Running},
}

// draft judges one written draft and applies it to the shadow.
func (c *commit) draft(d *seen) {
	r := c.rows[d.id]
	switch {
	case d.isNew && r != nil:
		c.w.violate(16, "%s was created twice", name(d.id))
		return
	case d.isNew:
		r = c.create(d)
	case r == nil:
		c.w.violate(33, "%s is changed and was never created", name(d.id))
		return
	case r.x.Place == flow.Finished:
		c.w.violate(2, "%s is %s and is written again as %s", name(d.id), r.x.Stage, d.x.Stage)
		return
	case d.before.Stage != r.x.Stage || d.before.Attempt != r.x.Attempt || d.before.NextSeq != r.x.NextSeq || d.before.Owner != r.x.Owner || d.before.Place != r.x.Place:
		c.w.violate(4, "%s was decided on as %s in attempt %d with %d events and is %s in attempt %d with %d", name(d.id),
			d.before.Stage, d.before.Attempt, d.before.NextSeq, r.x.Stage, r.x.Attempt, r.x.NextSeq)
	}
	if _, known := c.touched[r]; !known {
		c.touched[r], c.entered[r.id] = r.x.Place, r.arrived
		c.changed = append(c.changed, r)
	}
	c.replay(r, d)
	if o := d.x.State.Cancel; o != nil {
		r.order = o
	}
	r.x = d.x
	c.settle(r, d.before.Place)
}

func (c *commit) create(d *seen) *row {
	r := &row{id: d.id, asks: d.x.Request, born: c.commits, lost: map[int]string{}, timedOut: map[int]bool{}}
	c.rows[d.id] = r
	c.order = append(c.order, d.id)
	c.created++
	if by := d.x.Labels[engine.ScheduleLabel]; by != "" {
		c.beaten[by]++
	}
	c.reran(r, d)
	if d.x.CreatedAt.After(c.now) {
		c.w.violate(24, "%s was created at %s, which is yet to come: it is %s", name(d.id), d.x.CreatedAt, c.now)
	}
	switch {
	case !d.x.Parent.IsZero():
		c.child(r, d)
	case d.x.Cached():
		c.cached(nil, r, d)
	case !d.x.ReusedOf.IsZero():
		c.w.violate(60, "%s was submitted, and reuses the outcome of %s", name(d.id), name(d.x.ReusedOf))
	}
	return r
}

// replay applies the events of a draft one by one.
func (c *commit) replay(r *row, d *seen) {
	stage, attempt, owner := r.x.Stage, r.x.Attempt, r.x.Owner
	place, recovered := r.x.Place, false
	line := name(r.id)
	for _, e := range d.events {
		line += " " + string(e.Type)
		if e.Seq != int64(len(r.events)+1) {
			c.w.violate(6, "%s: event %d stands in place %d", name(r.id), e.Seq, len(r.events)+1)
		}
		to, ok := lifecycle[e.Type][stage]
		if !ok {
			c.w.violate(1, "%s: %q while %s", name(r.id), e.Type, stage)
		}
		if e.Type == flow.EvRequested {
			attempt++
			c.attempts++
			c.opens(r, d, attempt)
			place, owner, recovered = flow.Delayed, flow.ID{}, false
		}
		if e.Attempt != attempt {
			c.w.violate(4, "%s: an event of attempt %d in attempt %d", name(r.id), e.Attempt, attempt)
		}
		switch {
		case e.Type == flow.EvProvisioning:
			place, owner = flow.Held, d.x.Owner
			c.claimed(r, &d.x, e)
			if expires, known := c.sessions[owner]; !owner.IsZero() && (!known || !expires.After(c.now)) {
				c.w.violate(3, "%s was claimed for session %s, which is gone", name(r.id), name(owner))
			}
			if !owner.IsZero() && !c.reaches[owner].Serves(d.x.Queue) {
				c.w.violate(3, "%s was claimed for session %s, which does not serve %q", name(r.id), name(owner), d.x.Queue)
			}
		case e.Type == flow.EvLost:
			c.recovery(r, e, attempt, owner)
			recovered = true
		case place == flow.Held && !owner.IsZero() && !recovered && e.Type != flow.EvRequested:
			c.author(r, e, attempt)
		}
		stage = to
		c.clock(r, e)
		c.pausing(r, e)
		r.events = append(r.events, e)
		if stage == flow.TimedOut {
			c.deadline(r, d, e, attempt)
		}
	}
	if stage != d.x.Stage || attempt != d.x.Attempt {
		c.w.violate(1, "%s: its events lead to %s in attempt %d, it is stored as %s in attempt %d", name(r.id), stage, attempt, d.x.Stage, d.x.Attempt)
	}
	if d.x.NextSeq != int64(len(r.events)+1) {
		c.w.violate(6, "%s has %d events and expects number %d", name(r.id), len(r.events), d.x.NextSeq)
	}
	if d.x.Place == flow.Held && r.x.Place == flow.Held && d.x.Attempt == r.x.Attempt && d.x.Owner != r.x.Owner {
		c.w.violate(3, "attempt %d of %s went from owner %s to %s", attempt, name(r.id), name(r.x.Owner), name(d.x.Owner))
	}
	if d.x.Stage.Terminal() != (d.x.Place == flow.Finished) || d.x.Stage.Terminal() != (d.x.Outcome != nil && !d.x.FinishedAt.IsZero()) {
		c.w.violate(2, "%s is %s, in place %s, with outcome %v", name(r.id), d.x.Stage, d.x.Place, d.x.Outcome)
	}
	c.times(r, d)
	if d.x.Inbox > flow.InboxLimit {
		c.w.violate(28, "%s keeps %d events", name(r.id), d.x.Inbox)
	}
	c.said = append(c.said, line)
}

// clock judges the time of an event: not before the previous event's, and not in the future.
func (c *commit) clock(r *row, e flow.Event) {
	if n := len(r.events); n > 0 && e.At.Before(r.events[n-1].At) {
		c.w.violate(37, "%s: event %d %q is %s earlier than the one before it", name(r.id), e.Seq, e.Type, r.events[n-1].At.Sub(e.At))
	}
	if e.At.After(c.now) {
		c.w.violate(37, "%s: event %d %q is yet to come, in %s", name(r.id), e.Seq, e.Type, e.At.Sub(c.now))
	}
}

// times compares the times of a row with those of its events.
func (c *commit) times(r *row, d *seen) {
	var claimed, started, finished time.Time
	for _, e := range r.events {
		switch e.Type {
		case flow.EvRequested:
			claimed = time.Time{}
		case flow.EvProvisioning:
			claimed = e.At
		case flow.EvRunning:
			if started.IsZero() {
				started = e.At
			}
		}
	}
	if d.x.Place == flow.Finished {
		finished = r.events[len(r.events)-1].At
	}
	if !d.x.ClaimedAt.Equal(claimed) || !d.x.StartedAt.Equal(started) || !d.x.FinishedAt.Equal(finished) {
		c.w.violate(37, "%s was claimed %s, started %s, finished %s: its events say %s, %s, %s", name(r.id),
			d.x.ClaimedAt, d.x.StartedAt, d.x.FinishedAt, claimed, started, finished)
	}
}

// opens judges the start of an attempt.
func (c *commit) opens(r *row, d *seen, attempt int) {
	most := max(1, d.x.Retry.MaxAttempts)
	if d.x.Retry.MaxAttempts == 0 && r.lost[attempt-1] != "" {
		most = 3
	}
	if attempt-r.back > most {
		c.w.violate(22, "%s opens attempt %d of %d, %d handed back", name(r.id), attempt, most, r.back)
	}
	if r.order != nil && r.order.As == flow.TimedOut && r.order.Code == flow.CodeTimeout {
		r.order, r.timedOut[attempt-1] = nil, true
	}
	if attempt > 1 && (r.cancelled || r.order != nil) {
		c.w.violate(23, "%s opens attempt %d after it was cancelled", name(r.id), attempt)
	}
}

// author judges an event of an attempt that a worker holds: the worker must have sent exactly that event.
func (c *commit) author(r *row, e flow.Event, attempt int) {
	k := try{r.id, attempt}
	said, ok := c.w.ledger.spoken(k, e.Seq)
	if !ok || said.Type != e.Type {
		c.w.violate(5, "%s: event %d %q of attempt %d was not said by its owner (who said %q)", name(r.id), e.Seq, e.Type, attempt, said.Type)
	}
	if e.Type == flow.EvCancelled && c.w.ledger.running(k) {
		c.w.violate(5, "%s: cancelled is recorded while attempt %d still runs", name(r.id), attempt)
	}
}

// recovery judges that an attempt is taken back: its owner must be gone, or have proved that it lost its history.
func (c *commit) recovery(r *row, e flow.Event, attempt int, owner flow.ID) {
	expires, known := c.sessions[owner]
	old := &r.x
	late := func(since time.Time, d time.Duration) bool { return !since.IsZero() && c.now.Sub(since) >= d }
	if bytes.Contains(e.Data, []byte("shut down")) {
		r.back++
		if !c.w.ledger.wasClosed(owner) {
			c.w.violate(22, "%s: attempt %d counts as handed back by session %s, which was not closed", name(r.id), attempt, name(owner))
		}
	}
	k := try{r.id, attempt}
	switch {
	case bytes.Contains(e.Data, []byte("declined it")):
		r.back++
		r.lost[attempt] = "declined"
		if !c.w.ledger.wasDeclined(k) || old.Stage != flow.Provisioning || c.w.ledger.wasBegun(k) {
			c.w.violate(5, "%s: attempt %d was taken back as one that its worker declined: it says so: %t, it is %s, it was begun: %t",
				name(r.id), attempt, c.w.ledger.wasDeclined(k), old.Stage, c.w.ledger.wasBegun(k))
		}
	case !known || !expires.After(c.now) || c.w.ledger.wasClosed(owner):
		r.lost[attempt] = "the worker is gone"
		if c.w.broker != nil && bytes.Contains(e.Data, []byte("was lost")) {
			c.w.broker.recovered(k, r.x.NextSeq, c.w.beganAt(c.by))
		}
	case late(old.GapSince, flow.GapTimeout):
		r.lost[attempt] = "gap"
	case old.Stage == flow.Provisioning && late(old.ClaimedAt, 30*time.Second):
		r.lost[attempt] = "never arrived"
	default:
		r.lost[attempt] = "?"
		c.w.violate(5, "%s: attempt %d was taken back (%s) from session %s, which lives until %s: it is %s", name(r.id), attempt, e.Data, name(owner), expires, c.now)
	}
}

// deadline judges an end by timeout.
func (c *commit) deadline(r *row, d *seen, e flow.Event, attempt int) {
	code := ""
	switch {
	case d.x.Outcome != nil && d.x.Outcome.Error != nil && d.x.Place == flow.Finished:
		code = d.x.Outcome.Error.Code
	default: // retried: the history says why
		if said, ok := c.w.ledger.spoken(try{r.id, attempt}, e.Seq); ok && said.Outcome != nil && said.Outcome.Error != nil {
			code = said.Outcome.Error.Code
		}
	}
	old, stood := &r.x, r.stoodUntil(e.At)
	var due time.Time
	switch code {
	case flow.CodeQueueTimeout:
		due = old.QueuedAt.Add(d.x.QueueTimeout)
	case flow.CodeTotalTimeout:
		due = d.x.CreatedAt.Add(d.x.TotalTimeout + stood.All)
	case flow.CodeTimeout:
		due = old.ClaimedAt.Add(d.x.Timeout + stood.Here)
	}
	if due.After(c.now) {
		c.w.violate(24, "%s ended with %s %s before its time", name(r.id), code, due.Sub(c.now))
	}
}

// settle keeps the shadow's lines and queues up to date.
func (c *commit) settle(r *row, before flow.Place) {
	if r.x.Place != before {
		c.arrivals++
		r.arrived, r.since = c.arrivals, c.commits
	}
	in := func(m map[string]map[flow.ID]*row, at string, is bool) {
		if at == "" {
			return
		}
		if m[at] == nil {
			m[at] = map[flow.ID]*row{}
		}
		if is {
			m[at][r.id] = r
		} else {
			delete(m[at], r.id)
		}
	}
	in(c.keys, r.x.Key, r.x.Place == flow.Waiting || r.x.Place == flow.Ready || r.x.Place == flow.Held)
	if r.moved != "" { // a copy loaded before the move names the old routing key
		in(c.ready, r.moved, false)
	}
	in(c.ready, r.x.Queue, r.x.Place == flow.Ready)
}

// reroute keeps the queues up to date when a waiting execution moves to another routing key.
func (c *commit) reroute(m *rerouted) {
	r := c.rows[m.id]
	if r == nil {
		c.w.violate(33, "%s is moved to routing key %q and was never created", name(m.id), m.routingKey)
		return
	}
	if waits := c.ready[r.x.Queue][r.id] != nil; waits {
		delete(c.ready[r.x.Queue], r.id)
		if c.ready[m.routingKey] == nil {
			c.ready[m.routingKey] = map[flow.ID]*row{}
		}
		c.ready[m.routingKey][r.id], r.since, r.moved = r, c.commits, m.routingKey
	}
	r.x.Queue = m.routingKey
	c.said = append(c.said, fmt.Sprintf("%s waits in %s", name(m.id), m.routingKey))
}

// close judges the state after the whole transaction.
func (c *commit) close() {
	for _, k := range c.items {
		if p := c.rows[k.workflow]; p != nil {
			c.startedWhilePaused(p, c.children[k])
		}
		if k.index > 0 && c.children[place{k.workflow, k.attempt, k.task, k.index - 1}] == nil {
			c.w.violate(19, "item %d of task %q of %s is created before item %d", k.index, k.task, name(k.workflow), k.index-1)
		}
	}
	keys := map[string]bool{}
	for _, r := range c.changed {
		if r.x.Key != "" {
			keys[r.x.Key] = true
		}
		c.overtaken(r)
		if r.x.Kind == flow.KindWorkflow && r.x.Place == flow.Finished {
			for _, k := range r.kids {
				if k.x.Place != flow.Finished {
					c.w.violate(20, "workflow %s is %s and its child %s (%s) is %s", name(r.id), r.x.Stage, name(k.id), k.x.Task, k.x.Stage)
				}
			}
		}
		if p := c.rows[r.x.Parent]; p != nil && r.x.Place != flow.Finished && c.touched[r] == 0 {
			c.inFlight(p, r)
		}
	}
	for key := range keys {
		c.key(key)
	}
}

func holds(p flow.Place) bool { return p == flow.Ready || p == flow.Held }

// key judges how many slots of a key are taken.
func (c *commit) key(key string) {
	held, limit := 0, 0
	var head *row // of the line
	for _, r := range c.keys[key] {
		limit = max(limit, r.x.KeyLimit)
		if holds(r.x.Place) {
			held++
		} else if head == nil || r.x.Priority > head.x.Priority || r.x.Priority == head.x.Priority && r.x.Ticket < head.x.Ticket {
			head = r
		}
	}
	if held > limit {
		c.w.violate(12, "key %q has %d holders: at most %d", key, held, limit)
	}
	// A transaction that admits only a few, or whose follow-up is refused, leaves the rest of the line to later ones; the end of the run shows
	// whether they do it.
	if head != nil && held < head.x.KeyLimit && c.w.plan.Rows == 0 && c.w.plan.Refused == 0 {
		c.w.violate(15, "key %q has %d slots taken and %s, the first of its line, may go at fewer than %d", key, held, name(head.id), head.x.KeyLimit)
	}
}

// overtaken judges the order in which executions were admitted or claimed.
func (c *commit) overtaken(r *row) {
	before := c.touched[r]
	if r.x.Key != "" && holds(r.x.Place) && !holds(before) && r.x.Attempt > 0 {
		for _, o := range c.keys[r.x.Key] {
			if o == r || o.x.Place != flow.Waiting || o.since == c.commits {
				continue
			}
			// o waited before this transaction and still waits.
			if c.goesFirst(o, r, before == flow.Waiting) {
				c.w.violate(14, "%s was admitted to key %q before %s, which had waited longer", name(r.id), r.x.Key, name(o.id))
			}
		}
	}
	if r.x.Place != flow.Held || before == flow.Held || r.x.Owner.IsZero() {
		return
	}
	for _, o := range c.ready[r.x.Queue] {
		if o.since != c.commits && c.goesFirst(o, r, before == flow.Ready) {
			c.w.violate(14, "%s was claimed from queue %q before %s, which had waited longer", name(r.id), r.x.Queue, name(o.id))
		}
	}
}

// goesFirst reports whether o, which was in the line before this transaction, comes before r, which may have been too. When one transaction
// made both, the one with a key may be written first although it was accepted last: the transaction reads its line later.
func (c *commit) goesFirst(o, r *row, stood bool) bool {
	if o.x.Priority != r.x.Priority {
		return o.x.Priority > r.x.Priority
	}
	if stood && o.born == r.born && (o.x.Key == "") != (r.x.Key == "") {
		return false
	}
	return !stood || o.arrived < c.entered[r.id]
}

// child judges the creation of a child.
func (c *commit) child(r *row, d *seen) {
	k := place{d.x.Parent, d.x.ParentAttempt, d.x.Task, d.x.Index}
	if old := c.children[k]; old != nil {
		c.w.violate(17, "item %d of task %q of %s is %s and %s", k.index, k.task, name(k.workflow), name(old.id), name(r.id))
	}
	c.children[k] = r
	p := c.rows[d.x.Parent]
	if p == nil {
		c.w.violate(17, "%s is a child of %s, which does not exist", name(r.id), name(d.x.Parent))
		return
	}
	p.kids = append(p.kids, r)
	if d.x.ParentAttempt != p.x.Attempt || p.x.Place != flow.Held {
		c.w.violate(4, "%s is created for attempt %d of %s, which is %s in attempt %d", name(r.id), d.x.ParentAttempt, name(p.id), p.x.Stage, p.x.Attempt)
	}
	c.items = append(c.items, k)
	c.reused(p, r, d)
	def := c.w.load.definition(p)
	if def == nil {
		return
	}
	t := def.Task(k.task)
	c.round(p, r, d, t)
	for _, n := range t.Needs {
		for _, kid := range p.kids {
			if kid.x.Task == def.Tasks[n].Name && kid.x.ParentAttempt == p.x.Attempt && kid.x.Place != flow.Finished {
				c.w.violate(18, "task %q of %s starts while %q is still %s", k.task, name(p.id), kid.x.Task, kid.x.Stage)
			}
		}
		c.ended(p, def, n, k.task)
	}
}

// ended judges, when task by starts, the task that it needs: all items of that task exist, and they succeeded or need not have.
func (c *commit) ended(p *row, def *definition.Workflow, need int, by string) {
	t := def.Tasks[need]
	count, failed := 0, false
	for _, kid := range p.kids {
		if kid.x.Task == t.Name && kid.x.ParentAttempt == p.x.Attempt {
			count++
			failed = failed || kid.x.Stage != flow.Completed
		}
	}
	if last := lastRound(p, t, p.x.Attempt); t.Repeat != nil && !def.Task(by).If.Survives() && !last.reached() {
		c.w.violate(65, "task %q of %s starts after round %d of %q, which was not the last", by, name(p.id), count, t.Name)
	}
	if want := c.w.load.items(t); t.Repeat == nil && count < want && !def.Task(by).If.Survives() {
		c.w.violate(18, "task %q of %s starts with %d of %d items of %q", by, name(p.id), count, want, t.Name)
	}
	if failed && !t.ContinueOnError && !def.Task(by).If.Survives() {
		c.w.violate(18, "task %q of %s starts although %q has not succeeded", by, name(p.id), t.Name)
	}
}

// inFlight judges how many items of a foreach are open.
func (c *commit) inFlight(p, child *row) {
	def := c.w.load.definition(p)
	if def == nil {
		return
	}
	t := def.Task(child.x.Task)
	if t.InFlight == 0 {
		return
	}
	open := 0
	for _, kid := range p.kids {
		if kid.x.Task == t.Name && kid.x.ParentAttempt == p.x.Attempt && kid.x.Place != flow.Finished {
			open++
		}
	}
	if open > t.InFlight {
		c.w.violate(19, "task %q of %s has %d items open: at most %d", t.Name, name(p.id), open, t.InFlight)
	}
}

// remove judges what retention deletes.
func (c *commit) remove(ids []flow.ID) {
	for _, id := range ids {
		r := c.rows[id]
		if r == nil {
			continue
		}
		top := r
		for c.rows[top.x.Parent] != nil {
			top = c.rows[top.x.Parent]
		}
		if r.x.Place != flow.Finished || top.x.Parent.IsZero() && c.now.Sub(top.x.FinishedAt) < c.w.plan.Retention {
			c.w.violate(31, "%s was removed: it is %s, since %s", name(id), r.x.Stage, c.now.Sub(top.x.FinishedAt))
		}
	}
	for _, id := range ids {
		if r := c.rows[id]; r != nil {
			delete(c.rows, id)
			c.gone[id] = r
			delete(c.idem, r.x.IdempotencyKey)
			c.removed[id] = true
			c.order = slices.DeleteFunc(c.order, func(o flow.ID) bool { return o == id })
		}
	}
	c.said = append(c.said, fmt.Sprintf("removed %d", len(ids)))
}
