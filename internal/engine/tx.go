package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// transaction is a txn.Tx for capabilities with a package of their own. The methods are documented there.
var _ txn.Tx = (*transaction)(nil)

func (t *transaction) Now() time.Time        { return t.now }
func (t *transaction) Store() store.Access   { return &t.tx }
func (t *transaction) Rows() *store.Delta    { return t.changes.add() }
func (t *transaction) Failpoint(name string) { t.effects.addFailpoint(name) }
func (t *transaction) Parts() *txn.Parts     { return &t.parts }

func (t *transaction) Listens(trigger string) (generation int64, ok bool) {
	set := t.e.rules.current.Load()
	if len(set.On(trigger)) == 0 {
		return 0, false
	}
	return set.Generation, true
}

func (e *Engine) decide(ctx context.Context, ids []flow.ID, decision func(context.Context, txn.Tx) (any, error)) (any, error) {
	return inBatch(ctx, e, ids, func(ctx context.Context, t *transaction) (any, error) { return decision(ctx, t) })
}
