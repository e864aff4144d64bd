package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

func (t *tx) Define(ctx context.Context, d store.Definition) (int, bool, error) {
	version, isNew, err := t.Tx.Define(ctx, d)
	t.unordered = t.unordered || isNew || err != nil
	return version, isNew, err
}

var (
	qDoomed = sql(`SELECT d.id, d.created_at, d.action, d.detail FROM {s}.ended d WHERE d.id = ANY ($1::uuid[])`)

	qChildrenOf = sql(`SELECT workflow, id FROM {s}.children WHERE workflow = ANY ($1::uuid[])`)

	qLockEnded  = sql(`SELECT d.id FROM {s}.ended d WHERE d.id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED`)
	qStillLive  = sql(`SELECT l.id FROM {s}.live l WHERE l.id = ANY ($1::uuid[])`)
	qStillEnded = sql(`SELECT d.id FROM {s}.ended d WHERE d.id = ANY ($1::uuid[])`)

	qDeleteLabels = sql(`DELETE FROM {s}.labels b USING ` + labels.rows() + ` AS v
		WHERE ` + is("b.name", "v.name") + ` AND b.value = v.value AND b.id = v.id`)

	qDeleteKeys = sql(`DELETE FROM {s}.idempotency i USING ` + submittedWith.rows() + ` AS v WHERE ` + is("i.key", "v.key") + ` AND i.id = v.id`)

	qDeleteAsChild = sql(`DELETE FROM {s}.children c
		USING ` + children.rows() + ` AS v
		WHERE ` + childOf)

	qUnusedKeys = sql(`DELETE FROM {s}.keys WHERE key = ANY (ARRAY(SELECT k.key FROM {s}.keys k WHERE k.key = ANY ($1::text[])
		AND (SELECT true FROM {s}.live l WHERE l.key = k.key LIMIT 1) IS NULL ORDER BY k.key FOR UPDATE SKIP LOCKED))`)
)

// notBeingRemoved locks those of the executions that may be removed. It leaves out executions that another transaction has locked, because
// that one is removing them, and workflows that keep a child.
func (t *tx) notBeingRemoved(ctx context.Context, ids []flow.ID) ([]flow.ID, error) {
	var alive, locked, there []flow.ID
	t.unordered = true
	t.add(qStillLive, t.args().ids(ids), readAll(&alive, (*rows).id))
	t.add(qLockEnded, t.args().ids(ids), readAll(&locked, (*rows).id))
	t.add(qStillEnded, t.args().ids(ids), readAll(&there, (*rows).id))
	children := map[flow.ID][]flow.ID{}
	err := t.ask(ctx, qChildrenOf, t.args().ids(ids), func(r *rows) error {
		workflow := r.id()
		children[workflow] = append(children[workflow], r.id())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(alive) > 0 {
		return nil, fmt.Errorf("%s has not ended: %w", alive[0], store.ErrConflict)
	}
	going := setOf(ids)
	for _, id := range there {
		delete(going, id)
	}
	for _, id := range locked {
		going[id] = true
	}
	for again := true; again; {
		again = false
		for workflow, of := range children {
			if going[workflow] && slices.ContainsFunc(of, func(id flow.ID) bool { return !going[id] }) {
				delete(going, workflow)
				again = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id flow.ID) bool { return !going[id] }), nil
}

func setOf(ids []flow.ID) map[flow.ID]bool {
	set := make(map[flow.ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// removals are the statements that delete the rows of executions in all tables; each takes their ids.
var removals = []*query{
	sql(`DELETE FROM {s}.marks WHERE workflow = ANY ($1::uuid[])`),
	sql(`DELETE FROM {s}.changes WHERE workflow = ANY ($1::uuid[])`),
	sql(`DELETE FROM {s}.inbox WHERE id = ANY ($1::uuid[])`),
	sql(`DELETE FROM {s}.inputs WHERE id = ANY ($1::uuid[])`),
	sql(`DELETE FROM {s}.holds WHERE id = ANY ($1::uuid[])`),
	sql(`DELETE FROM {s}.events WHERE id = ANY ($1::uuid[])`),
	sql(`DELETE FROM {s}.payloads WHERE id = ANY ($1::uuid[])`),
	sql(`DELETE FROM {s}.ended WHERE id = ANY ($1::uuid[])`),
}

// Remove implements store.Executions. The lock row of a concurrency key is removed with the last execution that uses the key.
func (t *tx) Remove(ctx context.Context, ids []flow.ID) ([]flow.ID, error) {
	clear(t.expectedWorkflows)
	ids, err := t.notBeingRemoved(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("find executions to remove: %w", err)
	}
	gone := make(map[flow.ID]bool, len(ids))
	var labelled, keys, items, reran, retried columns
	labels.begin(&labelled)
	submittedWith.begin(&keys)
	children.begin(&items)
	reruns.begin(&reran)
	retries.begin(&retried)
	var locks []string
	var asks, waiting []flow.ID
	err = t.ask(ctx, qDoomed, t.args().ids(ids), func(r *rows) error {
		x := flow.Execution{ID: r.id()}
		gone[x.ID] = true
		x.CreatedAt = r.time()
		x.Action = r.text()
		if err := row.DecodeRequest(&x.Request, r.peek()); err != nil {
			return fmt.Errorf("read execution %s: %w", x.ID, err)
		}
		for name, value := range x.Labels {
			labels.add(&labelled, label{x.ID, name, value})
		}
		if x.IdempotencyKey != "" {
			submittedWith.add(&keys, &store.IdempotencyKey{Key: x.IdempotencyKey, Execution: x.ID})
		}
		if !x.Parent.IsZero() {
			children.add(&items, item{Execution: &x})
		}
		if x.Key != "" {
			locks = append(locks, x.Key)
		}
		if !x.RerunOf.IsZero() {
			reruns.add(&reran, &x)
		}
		if !x.RetryOf().IsZero() {
			retries.add(&retried, &x)
		}
		switch x.Kind {
		case flow.KindAsk:
			asks = append(asks, x.ID)
		case flow.KindWait:
			waiting = append(waiting, x.ID)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find executions to remove: %w", err)
	}
	ids = slices.DeleteFunc(ids, func(id flow.ID) bool { return !gone[id] })
	t.put(qDeleteLabels, &labelled)
	t.put(qDeleteKeys, &keys)
	t.put(qDeleteAsChild, &items)
	t.put(qDeleteReruns, &reran)
	t.put(qDeleteRetries, &retried)
	for _, q := range removals {
		t.add(q, t.args().ids(ids), nil)
	}
	if err := t.DropInquiries(ctx, asks); err != nil {
		return nil, err
	}
	if err := t.DropWaits(ctx, waiting); err != nil {
		return nil, err
	}
	if len(locks) > 0 {
		t.add(qUnusedKeys, t.args().texts(unique(locks)), nil)
	}
	err = t.flush(ctx)
	return store.Result(ids, err, "remove")
}
