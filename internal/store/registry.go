package store

import (
	"context"
	"time"
)

// NameKind is the kind of names in a registry.
type NameKind uint8

const (
	QueueNames      NameKind = iota // queues that were declared or that a worker has served
	RoutingKeyNames                 // routing keys (package flow) that an execution has had
	LanguageNames                   // languages that workers have announced
)

// Registry stores names that the servers on a store announce to each other, and settings that they share. Names are never removed, and
// settings never change.
type Registry interface {
	// AddName adds a name, and reports whether it is new.
	AddName(ctx context.Context, of NameKind, name string, at time.Time) (bool, error)
	// KeepSetting stores a setting, a JSON document, unless it exists.
	KeepSetting(ctx context.Context, name string, value []byte) error
}

// RegistryReader reads the registries.
type RegistryReader interface {
	// HasName reports whether a name is known.
	HasName(ctx context.Context, of NameKind, name string) (bool, error)
	// Names returns up to n known names, sorted, beyond after.
	Names(ctx context.Context, of NameKind, after string, n int) ([]string, error)
	// Setting returns a setting, or ErrNotFound.
	Setting(ctx context.Context, name string) ([]byte, error)
}
