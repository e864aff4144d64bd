package sqlite

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	qHasChildren = sql(`SELECT 1 FROM children WHERE workflow = ? LIMIT 1`)

	qIsLive = sql(`SELECT 1 FROM live WHERE n = ?`)
)

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
