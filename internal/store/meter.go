package store

import (
	"context"
	"time"
)

// MeterLock is the concurrency key under whose lock the meter of a rate's key is read and written: "@rate:" and the key. No execution has such
// a key.
const MeterLock = "@rate:"

// Meters keeps how far the rates of keys are used up, each as the moment at which the key would be idle if everything that has begun had come
// evenly spaced.
type Meters interface {
	// Meters reads the meters of keys; those that there are not are left out. The caller has locked each key's MeterLock.
	Meters(ctx context.Context, keys []string) (map[string]time.Time, error)
}
