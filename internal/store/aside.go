package store

import (
	"context"

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
