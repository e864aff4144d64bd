package store

import (
	"context"
	"time"
)

// NameKind says what the names of a registry are of.
type NameKind uint8

// The registries.
const (
	QueueNames    NameKind = iota // queues that were declared, or that a worker has served
	LaneNames                     // lanes (package flow) that something has been put into
	LanguageNames                 // languages that workers have brought
)

// Registry keeps names that the servers on a store make known to each other, and settings that they share. A name stays
// known for good, and a setting never changes.
type Registry interface {
	// AddName makes a name known, and reports whether it was not known before.
	AddName(ctx context.Context, of NameKind, name string, at time.Time) (bool, error)
	// KeepSetting stores a setting, a JSON document, unless there is one of the name.
	KeepSetting(ctx context.Context, name string, value []byte) error
}

// RegistryReader answers readers of the registries.
type RegistryReader interface {
	// HasName reports whether a name is known.
	HasName(ctx context.Context, of NameKind, name string) (bool, error)
	// Names returns up to n names that are known, in order, beyond after.
	Names(ctx context.Context, of NameKind, after string, n int) ([]string, error)
	// Setting returns a setting, or ErrNotFound.
	Setting(ctx context.Context, name string) ([]byte, error)
}
