package store

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// AsideKind is what a loop could not do with a signal or a wait. Stores keep the numbers.
type AsideKind int

// The kinds.
const (
	AsideMatching AsideKind = 1 // ask the rules about a new signal
	AsideMeeting  AsideKind = 2 // ask open waits about a signal
	AsideLooking  AsideKind = 3 // look at the signals that a wait of an execution is for
)

// Aside is a signal, or the wait of an execution, that a loop has put aside. Readers that serve the loop leave it out until its time.
type Aside struct {
	Kind AsideKind
	ID   flow.ID // of the signal, or of the execution
	flow.Aside
}

// AsideReader answers readers about what was put aside.
type AsideReader interface {
	// Aside returns what was put aside under a kind and an id, also when its time has passed, or ErrNotFound.
	Aside(ctx context.Context, kind AsideKind, id flow.ID) (flow.Aside, error)
}

// AsideAt is what is put aside under a kind and an id at a moment; nil: nothing, or its time has come.
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
