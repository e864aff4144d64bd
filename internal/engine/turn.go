package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// turn is the working set of one transaction: what was loaded, what has been decided, and what these decisions make
// necessary. Requests of one batch see each other's effects through it.
type turn struct {
	e   *Engine
	tx  store.Tx
	now time.Time

	wantIDs     []flow.ID
	wantIdem    []string
	wantKeys    []string // concurrency keys
	wantUploads []blob.Sum

	drafts  map[flow.ID]*flow.Draft
	dirty   []*flow.Draft // to be written, in the order in which they were decided
	idem    map[string]store.IdempotencyKey
	newIdem []store.IdempotencyKey
	marks   []store.Mark
	changes []store.WorkflowChange

	keys  map[string]*keyTurn
	freed map[flow.ID]bool                    // whose slot has been taken off its key's count since the last flush
	given map[flow.ID]bool                    // who got a slot since then, which its Before does not show
	folds map[flow.ID]bool                    // workflows with news from their tasks
	fresh map[flow.ID]bool                    // workflows whose attempt has begun in this turn, and that have no tasks yet
	ends  map[flow.ID]map[flow.ID]*flow.Draft // what ended in this turn, by parent
	news  map[flow.ID][]*flow.Draft           // those of them of which the workflow's progress does not know yet

	workflows map[store.WorkflowAttempt]*progress // that have been looked at
	payloads  map[flow.ID]bool                    // executions whose payload has been loaded
	budget    budget
	postpones bool      // what follows from the requests is left to the next transactions
	own       own       // what the requests themselves are to go on with, where they postpone what follows
	again     []*foldOp // workflows that go on in the next transaction
	lines     []string  // keys whose line goes on in the next transaction

	resolved map[string]resolved      // definitions that were looked up
	uploads  map[blob.Sum]flow.ID     // uploads that were looked for and are there
	held     map[flow.ID][]store.Hold // what new executions hold that are not written yet

	nextTicket, lastTicket int64
	claimers               *[]*claimer // that were taken out of those that wait, for this transaction
	allowed                map[*claimer]*allowance
	scheduled              map[string]int   // how much came into each queue and is not handed over
	writing                map[flow.ID]bool // scratch of flush
	touched                []*flow.Draft    // everything written; what is written twice is here twice, as it stands in the end
	ended                  byStatus[int64]  // how many have ended, by status
	gaps                   int64            // attempts that were ended because an event never came
	lanes                  map[string]bool  // lanes that something was put into
	claimed                map[*claimer][]*flow.Execution
	dry                    map[string]bool // queues found empty
	claiming               time.Duration   // spent on the claimers
	taken                  int             // bytes of payload that came with what the claimers took
}

// keyTurn is a concurrency key in a turn.
type keyTurn struct {
	locked bool // use is how full the key is, what the turn has decided included
	use    store.KeyUse
	freed  bool // somebody in its line may go
}

func (e *Engine) newTurn(tx store.Tx) *turn {
	return &turn{
		e: e, tx: tx,
		drafts:    map[flow.ID]*flow.Draft{},
		keys:      map[string]*keyTurn{},
		freed:     map[flow.ID]bool{},
		given:     map[flow.ID]bool{},
		folds:     map[flow.ID]bool{},
		ends:      map[flow.ID]map[flow.ID]*flow.Draft{},
		scheduled: map[string]int{},
		claimed:   map[*claimer][]*flow.Execution{},
		allowed:   map[*claimer]*allowance{},
		dry:       map[string]bool{},
		writing:   map[flow.ID]bool{},
		fresh:     map[flow.ID]bool{},
		news:      map[flow.ID][]*flow.Draft{},
		workflows: map[store.WorkflowAttempt]*progress{},
		payloads:  map[flow.ID]bool{},
		budget:    e.budget,
	}
}

// run takes a batch from its requests to everything that follows from them.
func (t *turn) run(ctx context.Context, ops []op) error {
	for _, o := range ops {
		o.want(t)
	}
	if t.postpones {
		t.own = t.wantedSteps()
	}
	t.expectClaimer(ops)
	if err := t.loadWanted(ctx); err != nil {
		return err
	}
	for _, o := range ops {
		if err := o.decide(ctx, t); err != nil {
			return err
		}
	}
	if err := t.claimWaiting(ctx); err != nil {
		return err
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	if err := t.claimScheduled(ctx); err != nil {
		return err
	}
	return t.claimLate(ctx)
}

// expectClaimer tells the store of the session that will probably be given something: it is locked with the first statement, and not
// by one of its own.
func (t *turn) expectClaimer(ops []op) {
	if len(*t.claimers) > 0 {
		t.tx.ExpectSession((*t.claimers)[0].session)
		return
	}
	if !slices.ContainsFunc(ops, func(o op) bool { return o.class() != quietly }) {
		return
	}
	if session, queues := t.e.expected(); len(queues) > 0 {
		t.tx.ExpectSession(session)
		t.tx.ExpectEmpty(queues)
	}
}

// settle writes what is decided and follows it up until nothing follows any more: freed keys admit whoever waits, and
// workflows with news take their next steps, which may start and end further executions.
func (t *turn) settle(ctx context.Context) error {
	if t.postpones {
		return t.postponeAll(ctx)
	}
	for {
		if err := t.handOver(ctx); err != nil {
			return err
		}
		// A new workflow is written once, with its first step. One that holds a key must be there to be counted, and so
		// must the task of a workflow that is about to look at how far its tasks are.
		if err := t.flushBut(ctx, func(d *flow.Draft) bool { return d.New && d.Key == "" && t.fresh[d.ID] && !t.folds[d.Parent] }); err != nil {
			return err
		}
		again, err := t.admitLines(ctx)
		if err != nil {
			return err
		}
		if again {
			continue
		}
		if len(t.folds) == 0 {
			return nil
		}
		if err := t.advance(ctx); err != nil {
			return err
		}
	}
}

func (t *turn) loadWanted(ctx context.Context) error {
	if len(t.wantIdem) > 0 {
		var err error
		if t.idem, err = t.tx.Submitted(ctx, t.wantIdem); err != nil {
			return fmt.Errorf("load idempotency keys: %w", err)
		}
	}
	if err := t.load(ctx, t.wantIDs, store.WithoutPayload); err != nil {
		return err
	}
	if err := t.lockKeys(ctx, t.wantKeys); err != nil {
		return err
	}
	if err := t.lockUploads(ctx, t.wantUploads); err != nil {
		return err
	}
	var err error
	t.now, err = t.tx.Now(ctx) // last: a store that is a round trip away has told it with the first of what was loaded
	return err
}

// load brings executions into the turn.
func (t *turn) load(ctx context.Context, ids []flow.ID, p store.Payload) error {
	missing := make([]flow.ID, 0, len(ids))
	for _, id := range ids {
		if _, have := t.drafts[id]; !have {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	xs, err := t.tx.Lock(ctx, missing, p)
	if err != nil {
		return fmt.Errorf("load executions: %w", err)
	}
	for _, x := range xs {
		t.add(flow.Load(x))
	}
	return nil
}

// adopt brings executions that a query returned into the turn and returns their drafts; one that is in the turn already
// stays as the turn has it.
func (t *turn) adopt(xs []*flow.Execution) []*flow.Draft {
	ds := make([]*flow.Draft, len(xs))
	for i, x := range xs {
		d, have := t.drafts[x.ID]
		if !have {
			d = flow.Load(x)
			t.add(d)
		}
		ds[i] = d
	}
	return ds
}

func (t *turn) add(d *flow.Draft) {
	t.drafts[d.ID] = d
}

// changed looks at a draft after a decision and notes what follows from it.
func (t *turn) changed(d *flow.Draft) {
	t.dirty = append(t.dirty, d)
	if (d.FreedKey() || t.given[d.ID] && !d.Place.HoldsKey()) && !t.freed[d.ID] {
		t.freed[d.ID] = true
		k := t.key(d.Key)
		k.freed = true
		k.use.Holders--
	}
	if d.Key != "" && d.Before.Place == flow.Waiting && (d.Place == flow.Finished || d.Place == flow.Delayed) {
		// It may have been all that kept the one behind it from going: each goes by its own limit.
		t.key(d.Key).freed = true
	}
	if d.Place == flow.Finished && !d.Parent.IsZero() {
		t.folds[d.Parent] = true
		if t.ends[d.Parent] == nil {
			t.ends[d.Parent] = map[flow.ID]*flow.Draft{}
		}
		if t.ends[d.Parent][d.ID] == nil {
			t.ends[d.Parent][d.ID] = d
			t.news[d.Parent] = append(t.news[d.Parent], d)
		}
	}
}

func (t *turn) key(name string) *keyTurn {
	k := t.keys[name]
	if k == nil {
		k = &keyTurn{}
		t.keys[name] = k
	}
	return k
}

// ticket draws the next ticket.
func (t *turn) ticket(ctx context.Context) (int64, error) {
	if t.nextTicket == t.lastTicket {
		const block = 256
		first, err := t.tx.Tickets(ctx, block)
		if err != nil {
			return 0, fmt.Errorf("draw tickets: %w", err)
		}
		t.nextTicket, t.lastTicket = first, first+block
	}
	t.nextTicket++
	return t.nextTicket - 1, nil
}

// flush writes what has been decided so far. The drafts stay in the turn, as if they had just been read.
func (t *turn) flush(ctx context.Context) error {
	changed := t.unwritten(t.dirty)
	t.dirty = t.dirty[:0]
	return t.write(ctx, changed)
}

// flushOld is flush, but for what is new: it stays to be written by the next flush.
func (t *turn) flushOld(ctx context.Context) error {
	return t.flushBut(ctx, func(d *flow.Draft) bool { return d.New })
}

// flushBut is flush, but for some of what is new.
func (t *turn) flushBut(ctx context.Context, stays func(*flow.Draft) bool) error {
	if !slices.ContainsFunc(t.dirty, stays) {
		return t.flush(ctx)
	}
	var later []*flow.Draft
	for _, d := range t.dirty {
		if stays(d) {
			later = append(later, d)
		}
	}
	changed := t.unwritten(slices.DeleteFunc(t.dirty, stays))
	t.dirty = later
	keys, marks, changes := t.newIdem, t.marks, t.changes // they may name what is not written yet
	t.newIdem, t.marks, t.changes = nil, nil, nil
	var laterMarks []store.Mark
	var laterChanges []store.WorkflowChange
	for _, c := range changes {
		if stays(t.drafts[c.ID]) {
			laterChanges = append(laterChanges, c)
		} else {
			t.changes = append(t.changes, c)
		}
	}
	for _, m := range marks {
		if stays(t.drafts[m.Workflow]) {
			laterMarks = append(laterMarks, m)
		} else {
			t.marks = append(t.marks, m)
		}
	}
	err := t.write(ctx, changed)
	t.newIdem, t.marks, t.changes = keys, laterMarks, laterChanges
	return err
}

// unwritten returns the drafts that hold something to commit, each once.
func (t *turn) unwritten(dirty []*flow.Draft) []*flow.Draft {
	var changed []*flow.Draft
	for _, d := range dirty {
		if d.Changed() && !t.writing[d.ID] {
			t.writing[d.ID] = true
			changed = append(changed, d)
		}
	}
	return changed
}

func (t *turn) write(ctx context.Context, changed []*flow.Draft) error {
	if len(changed) == 0 && len(t.marks) == 0 && len(t.changes) == 0 && len(t.newIdem) == 0 {
		return nil
	}
	if err := t.tx.Apply(ctx, store.Delta{Drafts: changed, Marks: t.marks, Changes: t.changes, Keys: t.newIdem, Holds: t.heldBy(changed)}); err != nil {
		return err
	}
	for _, d := range changed {
		if d.Ended() {
			*t.ended.as(d.Stage)++
		}
		seen := *d
		t.touched = append(t.touched, &seen)
		d.Before, d.New, d.Events, d.InboxAdd, d.InboxBelow = d.State, false, nil, nil, 0
	}
	clear(t.writing)
	clear(t.freed)
	clear(t.given)
	t.marks, t.changes, t.newIdem = nil, nil, nil
	return nil
}
