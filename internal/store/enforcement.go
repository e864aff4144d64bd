package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Enforcements keeps what rules have made of signals. They are written by Apply.
type Enforcements interface {
	// Enforced tells which rules have an enforcement of each of those signals numbered that are there, in order of their names; none is
	// an empty list. The signals stay until the transaction ends.
	Enforced(ctx context.Context, numbers []int64) (map[int64][]string, error)
	// LockEnforcement loads and locks what a rule has made of the signal numbered, without the signal's id, or says ErrNotFound.
	LockEnforcement(ctx context.Context, number int64, rule string) (flow.Enforcement, error)
}

// EnforcementReader answers readers about enforcements.
type EnforcementReader interface {
	// Enforcements returns up to f.Limit enforcements, those of the latest signals first.
	Enforcements(ctx context.Context, f EnforcementFilter) ([]flow.Enforcement, error)
}

// EnforcementFilter selects enforcements. Zero fields select everything.
type EnforcementFilter struct {
	Rule   string
	State  flow.EnforcementState
	Signal int64 // number of a signal
	// BeforeSignal and BeforeRule are the cursor: number and rule of the last one of the page before.
	BeforeSignal int64
	BeforeRule   string
	Limit        int
}
