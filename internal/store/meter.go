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
	// PutMeters writes meters under the same locks.
	PutMeters(ctx context.Context, all map[string]time.Time) error
	// DropMeters deletes up to n meters whose moments are before a time, and returns how many.
	DropMeters(ctx context.Context, before time.Time, n int) (int, error)
	// DropLocks looks at up to n rows that a store has for the locks of meters and windows (MeterLock, WindowLock), in order of their
	// keys, beyond after. It deletes those that no transaction holds and whose meter or window is gone, and returns the last key that it
	// has looked at; "": there are no more.
	DropLocks(ctx context.Context, after string, n int) (last string, err error)
}
