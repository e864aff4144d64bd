package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// observer sits between the engine and the database and notes the writes of a transaction, in order.
type observer struct {
	store.Tx
	w      *world
	writes []write
}

// write is one write of a transaction; exactly one field is set.
type write struct {
	draft    *seen
	mark     *store.Mark
	key      *store.IdempotencyKey
	tick     *store.Tick
	session  *store.Session
	renewed  *renewal
	ended    flow.ID // whose lease
	dropped  flow.ID
	removed  []flow.ID
	moved    *moved
	rerouted *rerouted
	expired  bool // every embedded session
}

type renewal struct {
	id    flow.ID
	lease time.Duration
}

// moved is a move of an alias.
type moved struct {
	name string
	to   int // the first of its versions
}

// rerouted is a waiting execution's move to another routing key.
type rerouted struct {
	id         flow.ID
	routingKey string
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
	for _, x := range d.Drafts {
		if x.New && !x.Parent.IsZero() && o.w.refuses(x.Parent, x.ParentAttempt) {
			if o.w.noise("panics", x.Parent) < 0.5 {
				panic(errRefused)
			}
			return errRefused
		}
	}
	if err := o.Tx.Apply(ctx, d); err != nil {
		return err
	}
	for _, x := range d.Drafts {
		o.writes = append(o.writes, write{draft: &seen{x.ID, x.New, x.Before, *x.Execution, slices.Clone(x.Events)}})
	}
	for _, m := range d.Workflows.Marks {
		o.writes = append(o.writes, write{mark: &m})
	}
	for _, k := range d.Keys {
		o.writes = append(o.writes, write{key: &k})
	}
	for _, k := range d.Schedules.Ticks {
		o.writes = append(o.writes, write{tick: &k})
	}
	return nil
}

// errRefused is the error of a database that rejects a row.
var errRefused = errors.New("the database does not take this row")

// refuses reports whether the database rejects every child of a workflow's attempt.
func (w *world) refuses(workflow flow.ID, attempt int) bool {
	return w.plan.Refused > 0 && w.noise("refused", workflow, attempt) < w.plan.Refused
}

func (o *observer) Reroute(ctx context.Context, x *flow.Execution, routingKey string) error {
	err := o.Tx.Reroute(ctx, x, routingKey)
	if err == nil {
		o.writes = append(o.writes, write{rerouted: &rerouted{x.ID, routingKey}})
	}
	return err
}

func (o *observer) Define(ctx context.Context, d store.Definition) (version int, created bool, err error) {
	version, created, err = o.Tx.Define(ctx, d)
	name, ok := strings.CutSuffix(strings.TrimPrefix(d.Name, "alias:"), "@"+stable)
	if err == nil && ok {
		var a api.Alias
		if err := json.Unmarshal(d.Document, &a); err != nil || len(a.To) == 0 {
			return version, created, fmt.Errorf("read what %s stands for: %w", d.Name, err)
		}
		o.writes = append(o.writes, write{moved: &moved{name, a.To[0].Version}})
	}
	return version, created, err
}

func (o *observer) OpenSession(ctx context.Context, s store.Session, lease time.Duration) error {
	err := o.Tx.OpenSession(ctx, s, lease)
	if err == nil {
		o.writes = append(o.writes, write{session: &s}, write{renewed: &renewal{s.ID, lease}})
	}
	return err
}

func (o *observer) RenewSessions(ctx context.Context, ids []flow.ID, lease time.Duration) ([]flow.ID, error) {
	renewed, err := o.Tx.RenewSessions(ctx, ids, lease)
	if err == nil {
		for _, id := range renewed {
			o.writes = append(o.writes, write{renewed: &renewal{id, lease}})
		}
	}
	return renewed, err
}

func (o *observer) EndLeases(ctx context.Context, ids []flow.ID) ([]flow.ID, error) {
	running, err := o.Tx.EndLeases(ctx, ids)
	if err == nil {
		for _, id := range ids {
			o.writes = append(o.writes, write{ended: id})
		}
	}
	return running, err
}

func (o *observer) ExpireEmbedded(ctx context.Context) error {
	err := o.Tx.ExpireEmbedded(ctx)
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

func (o *observer) Remove(ctx context.Context, ids []flow.ID) ([]flow.ID, error) {
	gone, err := o.Tx.Remove(ctx, ids)
	if err == nil {
		o.writes = append(o.writes, write{removed: slices.Clone(gone)})
	}
	return gone, err
}
