package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// observer sits between the engine and the database and notes what a transaction writes, in order.
type observer struct {
	store.Tx
	writes []write
}

// write is one thing that a transaction did; exactly one field is set.
type write struct {
	draft   *seen
	mark    *store.Mark
	key     *store.IdempotencyKey
	session *store.Session
	renewed *renewal
	dropped flow.ID
	removed []flow.ID
	expired bool // every embedded session
}

type renewal struct {
	id      flow.ID
	expires time.Time
}

// seen is a draft as it was written.
type seen struct {
	id     flow.ID
	isNew  bool
	before flow.State
	x      flow.Execution
	events []flow.Event
}

func (o *observer) Apply(ctx context.Context, d store.Delta) error {
	if err := o.Tx.Apply(ctx, d); err != nil {
		return err
	}
	for _, x := range d.Drafts {
		o.writes = append(o.writes, write{draft: &seen{x.ID, x.New, x.Before, *x.Execution, slices.Clone(x.Events)}})
	}
	for _, m := range d.Marks {
		o.writes = append(o.writes, write{mark: &m})
	}
	for _, k := range d.Keys {
		o.writes = append(o.writes, write{key: &k})
	}
	return nil
}

func (o *observer) OpenSession(ctx context.Context, s store.Session) error {
	err := o.Tx.OpenSession(ctx, s)
	if err == nil {
		o.writes = append(o.writes, write{session: &s})
	}
	return err
}

func (o *observer) RenewSessions(ctx context.Context, ids []flow.ID, now, expires time.Time) ([]flow.ID, error) {
	renewed, err := o.Tx.RenewSessions(ctx, ids, now, expires)
	if err == nil {
		for _, id := range renewed {
			o.writes = append(o.writes, write{renewed: &renewal{id, expires}})
		}
	}
	return renewed, err
}

func (o *observer) ExpireEmbedded(ctx context.Context, now time.Time) error {
	err := o.Tx.ExpireEmbedded(ctx, now)
	if err == nil {
		o.writes = append(o.writes, write{expired: true})
	}
	return err
}

func (o *observer) DropSession(ctx context.Context, id flow.ID) error {
	err := o.Tx.DropSession(ctx, id)
	if err == nil {
		o.writes = append(o.writes, write{dropped: id})
	}
	return err
}

func (o *observer) Remove(ctx context.Context, ids []flow.ID) error {
	err := o.Tx.Remove(ctx, ids)
	if err == nil {
		o.writes = append(o.writes, write{removed: slices.Clone(ids)})
	}
	return err
}
