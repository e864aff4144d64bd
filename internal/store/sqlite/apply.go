package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qInsertID = sql(`INSERT INTO ids (id, n) VALUES (?, ?)`)

	qInsertExecution = sql(inserted.insert("executions"))

	qInsertLabel = sql(`INSERT INTO labels (name, value, n) VALUES (?, ?, ?)`)

	qInsertChild = sql(`INSERT INTO children (workflow, attempt, task, idx, n, ended) VALUES (?, ?, ?, ?, ?, ?)`)

	qEndChild = sql(`UPDATE children SET ended = ? WHERE workflow = ? AND attempt = ? AND task = ? AND idx = ? AND n = ?`)

	qInsertLive = sql(live.insert("live"))

	qMove = sql(`UPDATE live SET ` + moved.sets() + asRead)

	qStep = sql(`UPDATE live SET ` + stepped.sets() + asRead)

	qDelete = sql(`DELETE FROM live` + asRead)

	qInsertEnded = sql(closed.insert("ended"))

	qInsertEvent = sql(`INSERT INTO events (k, attempt, type, after, data) VALUES (?, ?, ?, ?, ?)`)

	qKeep = sql(`INSERT OR REPLACE INTO inbox (n, seq, event) VALUES (?, ?, ?)`)

	qDropKept = sql(`DELETE FROM inbox WHERE n = ? AND seq < ?`)

	qMark = sql(`INSERT OR REPLACE INTO marks (workflow, attempt, task, state, total, error) VALUES (?, ?, ?, ?, ?, ?)`)

	qInsertKey = sql(`INSERT INTO idempotency (key, n, hash) VALUES (?, ?, ?)`)
)

// parts write the parts of a decision. Their order matters: executions come before the rows that refer to them.
var parts = []func(*tx, *store.Delta) error{
	(*tx).putExecutions, (*tx).putWorkflows, (*tx).putAttached, (*tx).putSignals, (*tx).putRest,
}

func (t *tx) Apply(_ context.Context, d store.Delta) error {
	t.delta = d // the address of d itself would allocate a kilobyte on the heap for each call
	defer func() { t.delta = store.Delta{} }()
	for _, put := range parts {
		if err := put(t, &t.delta); err != nil {
			return err
		}
	}
	return nil
}

// putExecutions writes executions. All new ones get their numbers first, because one may refer to another as its parent.
func (t *tx) putExecutions(d *store.Delta) error {
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
	return nil
}

// putWorkflows writes the progress of workflows.
func (t *tx) putWorkflows(d *store.Delta) error {
	for _, m := range d.Workflows.Marks {
		if err := t.mark(m); err != nil {
			return fmt.Errorf("mark task %q of %s: %w", m.Task, m.Workflow, err)
		}
	}
	for _, c := range d.Workflows.Changes {
		n, err := t.mustNumber(c.ID)
		if err == nil {
			err = taken(t.c.use(qInsertChange).int(n).int(int64(c.Attempt)).int(c.Number).blob(c.Change).run())
		}
		if err != nil {
			return fmt.Errorf("write change %d of %s: %w", c.Number, c.ID, err)
		}
	}
	return nil
}

// putAttached writes the other rows of executions: idempotency keys, input, references to uploads, and the outcomes that reruns reuse.
func (t *tx) putAttached(d *store.Delta) error {
	for _, k := range d.Keys {
		n, err := t.mustNumber(k.Execution)
		if err == nil {
			err = taken(t.c.use(qInsertKey).text(k.Key).int(n).blob(k.Hash[:]).run())
		}
		if err != nil {
			return fmt.Errorf("write idempotency key %q: %w", k.Key, err)
		}
	}
	ctx := context.Background()
	if err := t.AddInput(ctx, d.Input); err != nil {
		return err
	}
	if err := t.AddUploadReferences(ctx, d.UploadReferences); err != nil {
		return err
	}
	return t.Reuse(ctx, d.Workflows.Reuses)
}

// putSignals writes signals and the enforcements of rules. Windows are closed before their enforcements are written.
func (t *tx) putSignals(d *store.Delta) error {
	ctx := context.Background()
	if err := t.Match(ctx, d.Signals.Matched); err != nil {
		return err
	}
	if err := t.PutSignals(ctx, d.Signals.New); err != nil {
		return err
	}
	for i := range d.Windows.Closed {
		k := &d.Windows.Closed[i]
		if err := t.CloseWindow(ctx, k, relational.Written(k)); err != nil {
			return err
		}
	}
	if err := t.RetryEnforcements(ctx, d.Rules.Retried); err != nil {
		return err
	}
	return t.PutEnforcements(ctx, d.Rules.Enforcements)
}

// putRest writes all other parts of a decision.
func (t *tx) putRest(d *store.Delta) error {
	ctx := context.Background()
	if err := t.PutRest(ctx, d); err != nil {
		return err
	}
	if err := t.AddSwitches(ctx, d.Rules.Switches); err != nil {
		return err
	}
	return t.PutKept(ctx, d.Kept)
}

// taken turns the error of an existing row into a conflict, because another writer was first.
func taken(err error) error {
	if e, ok := errors.AsType[*sqliteError](err); ok &&
		(e.code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.code == sqlite3.SQLITE_CONSTRAINT_UNIQUE) {
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
		err = t.insert(draft{x, n, 0})
	} else {
		err = t.update(draft{x, n, 0})
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
		if err := t.c.use(qKeep).int(n).int(e.Seq).blob(t.c.enc.kept(e)).run(); err != nil {
			return fmt.Errorf("keep event %d: %w", e.Seq, err)
		}
	}
	return nil
}

// openChild is the value of children.ended for a child that has not ended.
const openChild = 2

func (t *tx) insert(x draft) error {
	if !x.Parent.IsZero() {
		var err error
		if x.parent, err = t.mustNumber(x.Parent); err != nil {
			return fmt.Errorf("find parent: %w", err)
		}
		ended := int64(openChild)
		if x.Place == flow.Finished {
			ended = int64(x.Stage)
		}
		err = taken(t.c.use(qInsertChild).int(x.parent).int(int64(x.ParentAttempt)).text(x.Task).int(int64(x.Index)).
			int(x.n).int(ended).run())
		if err != nil {
			return fmt.Errorf("place as item %d of task %q: %w", x.Index, x.Task, err)
		}
	}
	if err := inserted.bind(t.c.use(qInsertExecution), x).run(); err != nil {
		return err
	}
	for k, v := range x.Labels {
		if err := t.c.use(qInsertLabel).text(k).text(v).int(x.n).run(); err != nil {
			return fmt.Errorf("write label %q: %w", k, err)
		}
	}
	if !x.RerunOf.IsZero() {
		if err := t.c.use(qInsertRerun).id(x.RerunOf).int(x.n).run(); err != nil {
			return fmt.Errorf("note what it runs again: %w", err)
		}
	}
	if of := x.RetryOf(); !of.IsZero() {
		if err := t.c.use(qInsertRetry).id(of).int(x.n).run(); err != nil {
			return fmt.Errorf("note what it is a retry of: %w", err)
		}
	}
	if x.Place == flow.Finished {
		return t.end(x)
	}
	return live.bind(t.c.use(qInsertLive), x).run()
}

func (t *tx) update(x draft) error {
	if !x.Changed() {
		return nil
	}
	var s *stmt
	switch {
	case x.Place == flow.Finished:
		s = t.c.use(qDelete)
	case staysPut(x):
		s = stepped.bind(t.c.use(qStep), x)
	default:
		s = moved.bind(t.c.use(qMove), x)
	}
	if err := s.before(x).run(); err != nil {
		return err
	}
	if t.c.changes() != 1 {
		b := &x.Before
		return fmt.Errorf("%w: it is no longer %s in attempt %d with %d events", store.ErrConflict, b.Stage, b.Attempt, b.NextSeq-1)
	}
	if x.Place != flow.Finished {
		return nil
	}
	if !x.Parent.IsZero() {
		if err := t.endChild(x); err != nil {
			return err
		}
	}
	if !x.RerunOf.IsZero() {
		if err := t.DropReuses(context.Background(), []flow.ID{x.ID}); err != nil {
			return fmt.Errorf("forget what it reuses: %w", err)
		}
	}
	return t.end(x)
}

func (t *tx) endChild(x draft) error {
	parent, err := t.mustNumber(x.Parent)
	if err != nil {
		return fmt.Errorf("find parent: %w", err)
	}
	err = t.c.use(qEndChild).int(int64(x.Stage)).int(parent).int(int64(x.ParentAttempt)).text(x.Task).int(int64(x.Index)).int(x.n).run()
	return store.Failed(err, "tell parent")
}

func (t *tx) end(x draft) error { return closed.bind(t.c.use(qInsertEnded), x).run() }

func (t *tx) mark(m store.Mark) error {
	n, err := t.mustNumber(m.Workflow)
	if err != nil {
		return err
	}
	return t.c.use(qMark).int(n).int(int64(m.Attempt)).text(m.Task).text(m.State).int(int64(m.Total)).blob(t.c.enc.failure(m.Error)).run()
}
