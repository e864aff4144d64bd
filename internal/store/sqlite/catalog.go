package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// definitions are the columns of the versions of definitions.
var definitions = relation[*store.Definition, *store.Definition]{
	{"name", func(s *stmt, x *store.Definition) { s.text(x.Name) }, func(s *stmt, x *store.Definition) { x.Name = s.getText() }},
	{"version", func(s *stmt, x *store.Definition) { s.int(int64(x.Version)) }, func(s *stmt, x *store.Definition) { x.Version = int(s.getInt()) }},
	{"kind", func(s *stmt, x *store.Definition) { s.text(x.Kind) }, func(s *stmt, x *store.Definition) { x.Kind = s.getText() }},
	{"hash", func(s *stmt, x *store.Definition) { s.blob(x.Hash[:]) }, func(s *stmt, x *store.Definition) { copy(x.Hash[:], s.peekBlob()) }},
	{"created_at", func(s *stmt, x *store.Definition) { s.time(x.CreatedAt) }, func(s *stmt, x *store.Definition) { x.CreatedAt = s.getTime() }},
	{"document", func(s *stmt, x *store.Definition) { s.blob(x.Document) }, func(s *stmt, x *store.Definition) { x.Document = s.getBlob() }},
}

var (
	qLatest = sql(`SELECT version, hash FROM definitions WHERE name = ? ORDER BY version DESC LIMIT 1`)

	qInsertDefinition = sql(definitions.insert("definitions"))

	qDefinition = sql(`SELECT ` + definitions.names("") + ` FROM definitions WHERE name = ? AND (? = 0 OR version = ?) ORDER BY version DESC LIMIT 1`)

	qDefinitions = sql(`SELECT ` + definitions[:len(definitions)-1].names("") + `, NULL FROM definitions d WHERE name > ?
		AND version = (SELECT max(version) FROM definitions m WHERE m.name = d.name) ORDER BY name LIMIT ?`)

	qHasChildren = sql(`SELECT 1 FROM children WHERE workflow = ? LIMIT 1`)

	qIsLive = sql(`SELECT 1 FROM live WHERE n = ?`)
)

// Definition implements store.Catalog.
func (t *tx) Definition(_ context.Context, name string, version int) (store.Definition, error) {
	return t.c.definition(name, version)
}

// Define implements store.Catalog.
func (t *tx) Define(_ context.Context, d store.Definition) (int, bool, error) {
	if d.Version > 0 {
		if err := taken(definitions.bind(t.c.use(qInsertDefinition), &d).run()); err != nil {
			return 0, false, fmt.Errorf("define %q version %d: %w", d.Name, d.Version, err)
		}
		return d.Version, true, nil
	}
	var latest int
	same := false
	s := t.c.use(qLatest).text(d.Name)
	if s.next() {
		latest = int(s.getInt())
		same = slices.Equal(s.peekBlob(), d.Hash[:])
	}
	if err := s.done(); err != nil {
		return 0, false, fmt.Errorf("define %q: %w", d.Name, err)
	}
	if same {
		return latest, false, nil
	}
	d.Version = latest + 1
	err := definitions.bind(t.c.use(qInsertDefinition), &d).run()
	if err != nil {
		return 0, false, fmt.Errorf("define %q: %w", d.Name, err)
	}
	return d.Version, true, nil
}

// removals are the statements that delete the rows of an execution in all tables; each takes its number.
var removals = []*query{
	sql(`DELETE FROM marks WHERE workflow = ?`),
	sql(`DELETE FROM changes WHERE workflow = ?`),
	sql(`DELETE FROM inbox WHERE n = ?`),
	sql(`DELETE FROM inputs WHERE n = ?`),
	sql(`DELETE FROM holds WHERE n = ?`),
	sql(`DELETE FROM ended WHERE n = ?`),
	sql(`DELETE FROM executions WHERE n = ?`),
}

var (
	qDeleteEvents  = sql(`DELETE FROM events WHERE k >= ? AND k < ?`)
	qDeleteLabel   = sql(`DELETE FROM labels WHERE name = ? AND value = ? AND n = ?`)
	qDeleteKey     = sql(`DELETE FROM idempotency WHERE key = ? AND n = ?`)
	qDeleteID      = sql(`DELETE FROM ids WHERE id = ?`)
	qDeleteAsChild = sql(`DELETE FROM children WHERE workflow = ? AND attempt = ? AND task = ? AND idx = ? AND n = ?`)
)

// Remove implements store.Executions.
func (t *tx) Remove(_ context.Context, ids []flow.ID) ([]flow.ID, error) {
	gone := make([]flow.ID, 0, len(ids))
	for _, id := range ids {
		n, ok, err := t.number(id)
		removed := false
		if err == nil && ok {
			removed, err = t.remove(n)
		}
		if err != nil {
			return nil, fmt.Errorf("remove %s: %w", id, err)
		}
		if removed {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

// remove removes one ended execution, unless it still has children.
func (t *tx) remove(n int64) (bool, error) {
	live, err := t.c.any(qIsLive, n)
	if err != nil {
		return false, err
	}
	if live {
		return false, fmt.Errorf("%w: it has not ended", store.ErrConflict)
	}
	if parent, err := t.c.any(qHasChildren, n); parent || err != nil {
		return false, err
	}
	return true, t.removeOne(n)
}

// any reports whether a query finds a row for a number.
func (c *conn) any(q *query, n int64) (bool, error) {
	s := c.use(q).int(n)
	found := s.next()
	return found, s.done()
}

func (t *tx) removeOne(n int64) error {
	x, err := t.c.load(n, store.WithoutPayload)
	if err != nil || x == nil {
		return err
	}
	for name, value := range x.Labels {
		if err := t.c.use(qDeleteLabel).text(name).text(value).int(n).run(); err != nil {
			return err
		}
	}
	if x.IdempotencyKey != "" {
		if err := t.c.use(qDeleteKey).text(x.IdempotencyKey).int(n).run(); err != nil {
			return err
		}
	}
	if !x.Parent.IsZero() {
		if err := t.removeAsChild(n, x); err != nil {
			return err
		}
	}
	if !x.RerunOf.IsZero() {
		if err := t.c.use(qDeleteRerun).id(x.RerunOf).int(n).run(); err != nil {
			return err
		}
	}
	if of := x.RetryOf(); !of.IsZero() {
		if err := t.c.use(qDeleteRetry).id(of).int(n).run(); err != nil {
			return err
		}
	}
	switch x.Kind {
	case flow.KindAsk:
		err = t.DropInquiries(context.Background(), []flow.ID{x.ID})
	case flow.KindWait:
		err = t.DropWaits(context.Background(), []flow.ID{x.ID})
	}
	if err != nil {
		return err
	}
	if err := t.c.use(qDeleteEvents).int(eventKey(n, 0)).int(eventKey(n+1, 0)).run(); err != nil {
		return err
	}
	for _, q := range removals {
		if err := t.c.use(q).int(n).run(); err != nil {
			return err
		}
	}
	if err := t.c.use(qDeleteID).id(x.ID).run(); err != nil {
		return err
	}
	delete(t.numbers, x.ID)
	return nil
}

func (t *tx) removeAsChild(n int64, x *flow.Execution) error {
	parent, ok, err := t.number(x.Parent)
	if err != nil || !ok {
		return err
	}
	return t.c.use(qDeleteAsChild).int(parent).int(int64(x.ParentAttempt)).text(x.Task).int(int64(x.Index)).int(n).run()
}
