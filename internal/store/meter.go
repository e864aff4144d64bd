package store

import (
	"context"
	"time"
)

// MeterLock is the prefix "@rate:" of the concurrency key under whose lock the meter of a rate's key is read and written. No
// execution has such a key.
const MeterLock = "@rate:"

// Meters keeps how far the rates of keys are used up. Each is the time at which the key would be idle if the executions begun
// so far had begun evenly spaced.
type Meters interface {
	// Meters reads the meters of keys; keys without one are left out. The caller has locked each key's MeterLock.
	Meters(ctx context.Context, keys []string) (map[string]time.Time, error)
}
