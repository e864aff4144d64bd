package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Enforcements keeps the decisions of rules about signals. They are written by Apply.
type Enforcements interface {
	// Enforced returns, for each of the signals that exists, the names of the rules that have an enforcement of it, sorted; none is an empty
	// list. The signals cannot be removed before the transaction ends.
	Enforced(ctx context.Context, numbers []int64) (map[int64][]string, error)
	// LockEnforcement loads and locks the enforcement of a signal by a rule, without the signal's id, or returns
	// ErrNotFound.
	LockEnforcement(ctx context.Context, number int64, rule string) (flow.Enforcement, error)
}

// EnforcementReader reads enforcements.
type EnforcementReader interface {
	// Enforcements returns up to f.Limit enforcements, newest signals first.
	Enforcements(ctx context.Context, f EnforcementFilter) ([]flow.Enforcement, error)
}

// EnforcementFilter selects enforcements. Zero fields select everything.
type EnforcementFilter struct {
	Rule   string
	State  flow.EnforcementState
	Signal int64 // number of a signal
	// BeforeSignal and BeforeRule are the cursor: the number and the rule of the last enforcement on the previous page.
	BeforeSignal int64
	BeforeRule   string
	Limit        int
}

// RuleRows are the changes of a decision to rules.
type RuleRows struct {
	// Enforcements are inserted; a second one of the same signal and rule is a conflict, and so is a second one that ran an execution.
	Enforcements []flow.Enforcement
	// Retried replace failed and refused enforcements; any other state is a conflict.
	Retried []flow.Enforcement
	// Switches are inserted; a second one of the same generation is a conflict.
	Switches []Switch
}
