// Package txn is the unit of work of one batch as the engine's capabilities see it that have a package of their own, such as inquiries.
// The engine has the transaction itself, which loads, locks, decides and writes; a capability adds its hooks (Module), the kinds of
// executions that it runs (Kind) and what it has decided in each transaction (Part). Capabilities do not know one another.
package txn

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Tx is one transaction. It belongs to the committer that runs it: no other goroutine may use it, and it is over when the hook or decision
// returns that was given it.
type Tx interface {
	// Now is the time of the database, read after the locks that the requests needed.
	Now() time.Time
	// Store reads the store and locks rows of it. A read that could find what the transaction has decided writes that first.
	Store() store.Access
	// Rows are those beside executions that are written with the next flush, for more of them.
	Rows() *store.Delta
	// Draft is an execution of the transaction; nil when it has not been loaded, or does not exist.
	Draft(flow.ID) *flow.Draft
	// Load brings executions into the transaction, locked until its end and without their payloads.
	Load(context.Context, []flow.ID) error
	// Changed notes a draft after a decision: it is written, and what follows from it is decided.
	Changed(*flow.Draft)
	// Failpoint has the commit hit a point of package failpoint.
	Failpoint(string)
	// Listens returns the generation of the rules in force, and whether any of them listens to a trigger.
	Listens(trigger string) (generation int64, ok bool)
	// Record keeps a signal of Pawl's own, whose data is data as JSON. A rule of the generation should listen to its trigger. A signal with a
	// key that this transaction has kept before is left out: it was decided about twice.
	Record(ctx context.Context, s flow.Signal, generation int64, data any) error
	// Parts are what capabilities have decided; see Part.
	Parts() *Parts
}

// Decide runs a decision in one of the next batches, with the executions loaded, and returns its result after the commit. With an error the
// result is nil, and the decision may still be running, or be committed later. A decision that meets a conflict runs again.
type Decide func(ctx context.Context, executions []flow.ID, decision func(context.Context, Tx) (any, error)) (any, error)

// In is Decide for a decision whose result has a type.
func In[T any](ctx context.Context, decide Decide, executions []flow.ID, decision func(context.Context, Tx) (T, error)) (result T, err error) {
	r, err := decide(ctx, executions, func(ctx context.Context, t Tx) (any, error) { return decision(ctx, t) })
	result, _ = r.(T)
	return result, err
}

// Do is Decide for a decision without a result.
func Do(ctx context.Context, decide Decide, executions []flow.ID, decision func(context.Context, Tx) error) error {
	_, err := decide(ctx, executions, func(ctx context.Context, t Tx) (any, error) { return nil, decision(ctx, t) })
	return err
}

// FailInvalid fails an execution that the engine runs itself and whose payload asks for something that cannot be done.
func FailInvalid(t Tx, d *flow.Draft, why error) error {
	return d.Finish(flow.Failed, flow.Outcome{Error: &flow.Error{Code: flow.CodeInvalidInput, Message: why.Error()}}, t.Now(), 0)
}
