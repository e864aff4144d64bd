package store

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// AsideKind is the kind of work that a loop could not do for a signal or a wait. The numbers are stored.
type AsideKind int

const (
	AsideMatching    AsideKind = 1 // asking the rules about a new signal
	AsideCorrelation AsideKind = 2 // asking open waits about a signal
	AsideScan        AsideKind = 3 // searching for signals that match the wait of an execution
)

// Aside is a signal, or the wait of an execution, that a loop has put aside. The readers of that loop leave it out until its
// time.
type Aside struct {
	Kind AsideKind
	ID   flow.ID // of the signal, or of the execution
	flow.Aside
}

// AsideReader reads what was put aside.
type AsideReader interface {
	// Aside returns the record of a kind and an id, even if its time has passed, or ErrNotFound.
	Aside(ctx context.Context, kind AsideKind, id flow.ID) (flow.Aside, error)
}

// AsideAt returns the record of a kind and an id if its time has not come yet, else nil.
func AsideAt(ctx context.Context, r AsideReader, kind AsideKind, id flow.ID, now time.Time) (*flow.Aside, error) {
	a, err := r.Aside(ctx, kind, id)
	if errors.Is(err, ErrNotFound) || err == nil && !a.Until.After(now) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &a, nil
}
