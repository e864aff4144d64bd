package store

import (
	"context"
	"time"
)

// Switch says which version of a rule or a trigger was in force from a moment on, and whether it was paused. Switches are only ever
// added: those up to a generation are what was in force then.
type Switch struct {
	Generation int64  // 1, 2, 3 …, over all names
	Name       string // "rule:clean-disk"
	Version    int
	Paused     bool
	At         time.Time
	Reason     string // why it was paused, for people
}

// Switches loads switches.
type Switches interface {
	// LatestSwitches returns the latest switch of each of the names that has one, and the latest generation of all; 0: there is none.
	LatestSwitches(ctx context.Context, names []string) (map[string]Switch, int64, error)
}

// SwitchReader answers readers about switches.
type SwitchReader interface {
	// Generation is the latest generation; 0: there is none.
	Generation(ctx context.Context) (int64, error)
	// SwitchesAt returns the latest switch of each name that is not later than a generation, by name.
	SwitchesAt(ctx context.Context, generation int64) ([]Switch, error)
}
