package store

import (
	"context"
	"time"
)

// Switch records which version of a rule or a trigger is in force from a time on, and whether it is paused. Switches are only added, never
// changed: the latest ones up to a generation were in force at that generation.
type Switch struct {
	Generation int64  // 1, 2, 3 …, across all names
	Name       string // "rule:clean-disk"
	Version    int
	Paused     bool
	At         time.Time
	Reason     string // why it was paused, for people
}

// Switches loads switches.
type Switches interface {
	// LatestSwitches returns the latest switch of each of the names, and the latest generation of all; 0: there is none.
	LatestSwitches(ctx context.Context, names []string) (map[string]Switch, int64, error)
}

// SwitchReader reads switches.
type SwitchReader interface {
	// Generation returns the latest generation; 0: there is none.
	Generation(ctx context.Context) (int64, error)
	// SwitchesAt returns the latest switch of each name up to a generation, sorted by name.
	SwitchesAt(ctx context.Context, generation int64) ([]Switch, error)
}
