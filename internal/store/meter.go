package store

import (
	"context"
	"time"
)

// MeterLock is the prefix "@rate:" of the concurrency key under whose lock the meter of a rate's key is read and written. No
// execution has such a key.
const MeterLock = "@rate:"

// Meters stores the use of the rates of keys. A meter is the time at which the key would be idle if the executions so far had begun at
// equal intervals.
type Meters interface {
	// Meters reads the meters of keys; keys without a meter are left out. The caller has locked each key's MeterLock.
	Meters(ctx context.Context, keys []string) (map[string]time.Time, error)
}
