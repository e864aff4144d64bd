package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qInsertID = sql(`INSERT INTO ids (id, n) VALUES (?, ?)`)

	qInsertExecution = sql(`INSERT INTO executions (n, id, parent, created_at, action, detail, input, payload)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)

	qInsertLabel = sql(`INSERT INTO labels (name, value, n) VALUES (?, ?, ?)`)

	qInsertChild = sql(`INSERT INTO children (workflow, attempt, task, idx, n, ended) VALUES (?, ?, ?, ?, ?, ?)`)

	qEndChild = sql(`UPDATE children SET ended = ? WHERE workflow = ? AND attempt = ? AND task = ? AND idx = ? AND n = ?`)

	qInsertLive = sql(`INSERT INTO live (n, place, stage, attempt, next_seq, priority, ticket, queue, key, owner, ordered, wake,
		queued_at, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)

	qMove = sql(`UPDATE live SET place = ?, stage = ?, attempt = ?, next_seq = ?, ticket = ?, owner = ?, ordered = ?, wake = ?,
		queued_at = ?, state = ?` + asRead)

	// What leaves every indexed column alone spares the indexes.
	qStep = sql(`UPDATE live SET stage = ?, next_seq = ?, queued_at = ?, state = ?` + asRead)

	qDelete = sql(`DELETE FROM live` + asRead)

	qInsertEnded = sql(`INSERT INTO ended (n, stage, finished_after, state, error, output, queue) VALUES (?, ?, ?, ?, ?, ?, ?)`)

	qInsertEvent = sql(`INSERT INTO events (k, attempt, type, after, data) VALUES (?, ?, ?, ?, ?)`)

	qKeep = sql(`INSERT OR REPLACE INTO inbox (n, seq, event) VALUES (?, ?, ?)`)

	qDropKept = sql(`DELETE FROM inbox WHERE n = ? AND seq < ?`)

	qMark = sql(`INSERT OR REPLACE INTO marks (workflow, attempt, task, state, total, error) VALUES (?, ?, ?, ?, ?, ?)`)

	qInsertImport = sql(`INSERT INTO imports (n, at) VALUES (?, ?)`)

	qInsertKey = sql(`INSERT INTO idempotency (key, n, hash) VALUES (?, ?, ?)`)
)

// asRead is the condition that the row is still as the decision saw it.
const asRead = ` WHERE n = ? AND stage = ? AND attempt = ? AND next_seq = ? AND place = ? AND owner IS ?`

// Apply implements store.Tx.
func (t *tx) Apply(_ context.Context, d store.Delta) error {
	for _, x := range d.Drafts {
		if !x.New {
			continue
		}
		n, err := t.s.executions.draw(t.c, 1)
		if err != nil {
			return fmt.Errorf("number execution %s: %w", x.ID, err)
		}
		if err := taken(t.c.use(qInsertID).id(x.ID).int(n).run()); err != nil {
			return fmt.Errorf("insert execution %s: %w", x.ID, err)
		}
		t.numbers[x.ID] = n
	}
	for _, x := range d.Drafts {
		if err := t.apply(x); err != nil {
			return fmt.Errorf("write execution %s: %w", x.ID, err)
		}
	}
	for _, m := range d.Marks {
		if err := t.mark(m); err != nil {
			return fmt.Errorf("mark task %q of %s: %w", m.Task, m.Workflow, err)
		}
	}
	for _, c := range d.Changes {
		n, err := t.mustNumber(c.ID)
		if err == nil {
			err = taken(t.c.use(qInsertChange).int(n).int(int64(c.Attempt)).int(c.Number).blob(c.Change).run())
		}
		if err != nil {
			return fmt.Errorf("write change %d of %s: %w", c.Number, c.ID, err)
		}
	}
	for _, k := range d.Keys {
		n, err := t.mustNumber(k.Execution)
		if err == nil {
			err = taken(t.c.use(qInsertKey).text(k.Key).int(n).blob(k.Hash[:]).run())
		}
		if err != nil {
			return fmt.Errorf("write idempotency key %q: %w", k.Key, err)
		}
	}
	for i := range d.Input {
		if err := t.feed(&d.Input[i]); err != nil {
			return fmt.Errorf("write input of %s: %w", d.Input[i].Execution, err)
		}
	}
	for _, h := range d.Holds {
		if err := t.hold(h); err != nil {
			return fmt.Errorf("hold an upload for %s: %w", h.Execution, err)
		}
	}
	for i := range d.Reuses {
		if err := t.reuse(&d.Reuses[i]); err != nil {
			return fmt.Errorf("reuse the outcome of %s: %w", d.Reuses[i].From, err)
		}
	}
	for _, n := range d.Matched {
		if err := t.match(n); err != nil {
			return fmt.Errorf("match signal number %d: %w", n, err)
		}
	}
	for i := range d.Signals {
		if err := t.putSignal(&d.Signals[i]); err != nil {
			return fmt.Errorf("write signal %s: %w", d.Signals[i].ID.Text(flow.SignalPrefix), err)
		}
	}
	for i := range d.Closed {
		if err := t.closeWindow(&d.Closed[i]); err != nil {
			return fmt.Errorf("close window %q of rule %s: %w", d.Closed[i].Key, d.Closed[i].Rule, err)
		}
	}
	for i := range d.Retried {
		if err := t.retryEnforcement(&d.Retried[i]); err != nil {
			return fmt.Errorf("write the enforcement of rule %q again: %w", d.Retried[i].Rule, err)
		}
	}
	for i := range d.Enforcements {
		if err := t.putEnforcement(&d.Enforcements[i]); err != nil {
			return fmt.Errorf("write the enforcement of rule %q: %w", d.Enforcements[i].Rule, err)
		}
	}
	return t.applyRest(&d)
}

// applyRest writes what a decision changes beside executions and signals.
func (t *tx) applyRest(d *store.Delta) error {
	err := t.putShares(d.Shares, d.DroppedShares)
	if err == nil {
		err = t.putMeters(d.Meters)
	}
	if err == nil {
		err = t.putWindows(d.Windows, d.DroppedWindows)
	}
	if err == nil {
		err = t.putSchedules(d.Schedules)
	}
	if err == nil {
		err = t.addTicks(d.Ticks)
	}
	if err == nil {
		err = t.addSwitches(d.Switches)
	}
	if err == nil {
		err = t.putWaits(d.Waits, d.DroppedWaits)
	}
	if err == nil {
		err = t.eachUnmet(qPutUnmet, d.Unmet)
	}
	if err == nil {
		err = t.eachUnmet(qDropUnmet, d.Met)
	}
	if err == nil {
		err = t.putInquiries(d.Inquiries)
	}
	if err == nil {
		err = t.putAsides(d.Asides)
	}
	if err == nil {
		err = t.keep(d.Kept)
	}
	return err
}

// taken turns "such a row exists" into a conflict: another writer was first.
func taken(err error) error {
	var e *sqliteError
	if errors.As(err, &e) && (e.code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.code == sqlite3.SQLITE_CONSTRAINT_UNIQUE) {
		return fmt.Errorf("%w: it exists already", store.ErrConflict)
	}
	return err
}

func (t *tx) apply(x *flow.Draft) error {
	n, err := t.mustNumber(x.ID)
	if err != nil {
		return err
	}
	if x.New {
		err = t.insert(n, x)
	} else {
		err = t.update(n, x)
	}
	if err != nil {
		return err
	}
	if x.NextSeq > maxEvents {
		return fmt.Errorf("event %d: an execution has at most %d events", x.NextSeq, maxEvents)
	}
	created := row.Micros(x.CreatedAt)
	for i := range x.Events {
		e := &x.Events[i]
		err := t.c.use(qInsertEvent).int(eventKey(n, e.Seq)).int(int64(e.Attempt)).eventTypeParam(e.Type).
			int(row.Micros(e.At) - created).blob(e.Data).run()
		if err != nil {
			return fmt.Errorf("write event %d: %w", e.Seq, err)
		}
	}
	if x.InboxBelow > 0 {
		if err := t.c.use(qDropKept).int(n).int(x.InboxBelow).run(); err != nil {
			return fmt.Errorf("drop kept events: %w", err)
		}
	}
	for i := range x.InboxAdd {
		e := &x.InboxAdd[i]
		if err := t.c.use(qKeep).int(n).int(e.Seq).blob(t.enc.kept(e)).run(); err != nil {
			return fmt.Errorf("keep event %d: %w", e.Seq, err)
		}
	}
	return nil
}

// openChild is what children.ended holds while the child has not ended.
const openChild = 2

func (t *tx) insert(n int64, x *flow.Draft) error {
	var parent int64
	if !x.Parent.IsZero() {
		var err error
		if parent, err = t.mustNumber(x.Parent); err != nil {
			return fmt.Errorf("find parent: %w", err)
		}
		ended := int64(openChild)
		if x.Place == flow.Finished {
			ended = int64(x.Stage)
		}
		err = taken(t.c.use(qInsertChild).int(parent).int(int64(x.ParentAttempt)).text(x.Task).int(int64(x.Index)).
			int(n).int(ended).run())
		if err != nil {
			return fmt.Errorf("place as item %d of task %q: %w", x.Index, x.Task, err)
		}
	}
	err := t.c.use(qInsertExecution).int(n).id(x.ID).intOrNull(parent).int(row.Micros(x.CreatedAt)).text(x.Action).
		blob(t.enc.request(&x.Request)).blob(x.Input).blob(x.With).run()
	if err != nil {
		return err
	}
	for k, v := range x.Labels {
		if err := t.c.use(qInsertLabel).text(k).text(v).int(n).run(); err != nil {
			return fmt.Errorf("write label %q: %w", k, err)
		}
	}
	if !x.RerunOf.IsZero() {
		if err := t.c.use(qInsertRerun).id(x.RerunOf).int(n).run(); err != nil {
			return fmt.Errorf("note what it runs again: %w", err)
		}
	}
	if x.Imported != nil && parent == 0 {
		if err := t.c.use(qInsertImport).int(n).int(row.Micros(x.Imported.At)).run(); err != nil {
			return fmt.Errorf("note when it was imported: %w", err)
		}
	}
	if x.Place == flow.Finished {
		return t.end(n, x)
	}
	return t.c.use(qInsertLive).int(n).int(int64(x.Place)).int(int64(x.Stage)).int(int64(x.Attempt)).int(x.NextSeq).
		int(int64(x.Priority)).int(x.Ticket).text(x.Queue).textOrNull(x.Key).id(x.Owner).intOrNull(ordered(&x.State)).
		intOrNull(row.Micros(x.Wake())).intOrNull(row.Micros(x.QueuedAt)).blob(t.enc.state(&x.State, row.Micros(x.CreatedAt), false)).run()
}

func ordered(s *flow.State) int64 {
	if s.Cancel != nil {
		return 1
	}
	return 0
}

func (t *tx) update(n int64, x *flow.Draft) error {
	if !x.Changed() {
		return nil
	}
	b, created := &x.Before, row.Micros(x.CreatedAt)
	var s *stmt
	switch {
	case x.Place == flow.Finished:
		s = t.c.use(qDelete)
	case b.Place == x.Place && b.Attempt == x.Attempt && b.Ticket == x.Ticket && b.Owner == x.Owner &&
		ordered(b) == ordered(&x.State) && wakeOf(x.Execution, b).Equal(x.Wake()):
		s = t.c.use(qStep).int(int64(x.Stage)).int(x.NextSeq).intOrNull(row.Micros(x.QueuedAt)).
			blob(t.enc.state(&x.State, created, false))
	default:
		s = t.c.use(qMove).int(int64(x.Place)).int(int64(x.Stage)).int(int64(x.Attempt)).int(x.NextSeq).int(x.Ticket).
			id(x.Owner).intOrNull(ordered(&x.State)).intOrNull(row.Micros(x.Wake())).intOrNull(row.Micros(x.QueuedAt)).
			blob(t.enc.state(&x.State, created, false))
	}
	err := s.int(n).int(int64(b.Stage)).int(int64(b.Attempt)).int(b.NextSeq).int(int64(b.Place)).id(b.Owner).run()
	if err != nil {
		return err
	}
	if t.c.changes() != 1 {
		return fmt.Errorf("%w: it is no longer %s in attempt %d with %d events", store.ErrConflict, b.Stage, b.Attempt, b.NextSeq-1)
	}
	if x.Place != flow.Finished {
		return nil
	}
	if !x.Parent.IsZero() {
		if err := t.endChild(n, x); err != nil {
			return err
		}
	}
	if !x.RerunOf.IsZero() {
		if err := t.c.use(qDropReuses).int(n).run(); err != nil {
			return fmt.Errorf("forget what it reuses: %w", err)
		}
	}
	return t.end(n, x)
}

// wakeOf is the moment at which x would have woken in an earlier state.
func wakeOf(x *flow.Execution, s *flow.State) time.Time {
	then := flow.Execution{Request: x.Request, State: *s}
	return then.Wake()
}

func (t *tx) endChild(n int64, x *flow.Draft) error {
	parent, err := t.mustNumber(x.Parent)
	if err != nil {
		return fmt.Errorf("find parent: %w", err)
	}
	err = t.c.use(qEndChild).int(int64(x.Stage)).int(parent).int(int64(x.ParentAttempt)).text(x.Task).int(int64(x.Index)).int(n).run()
	if err != nil {
		return fmt.Errorf("tell parent: %w", err)
	}
	return nil
}

func (t *tx) end(n int64, x *flow.Draft) error {
	var e *flow.Error
	var output []byte
	if x.Outcome != nil {
		e, output = x.Outcome.Error, x.Outcome.Output
	}
	created := row.Micros(x.CreatedAt)
	return t.c.use(qInsertEnded).int(n).int(int64(x.Stage)).int(row.Micros(x.FinishedAt) - created).
		blob(t.enc.state(&x.State, created, true)).blob(t.enc.failure(e)).blob(output).text(x.Queue).run()
}

func (t *tx) mark(m store.Mark) error {
	n, err := t.mustNumber(m.Workflow)
	if err != nil {
		return err
	}
	return t.c.use(qMark).int(n).int(int64(m.Attempt)).text(m.Task).text(m.State).int(int64(m.Total)).blob(t.enc.failure(m.Error)).run()
}
