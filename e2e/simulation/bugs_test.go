package simulation

import (
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// bug is a planted one. It misbehaves where the simulation joins the product's parts, as the product itself would if it
// had the bug.
type bug struct {
	name      string
	invariant []int // any of which may catch it
	tune      func(*plan)
	tx        func(*world, store.Tx) store.Tx
	store     func(*world, store.Store) store.Store
	link      func(*world, handoff.Handoff) handoff.Handoff // as a worker has it
	server    func(*world, handoff.Handoff) handoff.Handoff // as an engine gives it
	submitted func(*world, []engine.Submitted)
}
