package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// SignalKey is what a signal that is sent again is known by.
type SignalKey struct{ Trigger, Key string }

// KeyOf is the key of a signal; its Key is "" where it has none.
func KeyOf(s *flow.Signal) SignalKey { return SignalKey{s.Trigger, s.Key} }

// KnownSignal is the signal that a key stands for.
type KnownSignal struct {
	ID   flow.ID
	Hash [32]byte
}

// Signals keeps what was emitted. Signals are written by Apply.
type Signals interface {
	// Signalled finds the signals that have the keys.
	Signalled(ctx context.Context, keys []SignalKey) (map[SignalKey]KnownSignal, error)
	// SignalledBodies says when the last signal with each of the bodies was emitted; bodies that there are not are left out.
	SignalledBodies(ctx context.Context, bodies [][32]byte) (map[[32]byte]time.Time, error)
	// LockSignals loads and locks those of the signals numbered that are new, passing over what another transaction has locked.
	LockSignals(ctx context.Context, numbers []int64) ([]flow.Signal, error)
	// DropSignals deletes signals of a trigger that are matched and were emitted before a time, the oldest first, with their enforcements and their
	// notes among the unmet ones, and returns how many. It ends behind the signal with which these are n rows or PageBytes of data.
	DropSignals(ctx context.Context, trigger string, before time.Time, n int) (int, error)
}

// SignalReader answers readers about signals. One whose row cannot be decoded is returned with its Damage.
type SignalReader interface {
	// Signal returns a signal, or ErrNotFound.
	Signal(ctx context.Context, id flow.ID) (flow.Signal, error)
	// OldestSignals says of up to n triggers of which there are signals, by name beyond after, when the oldest of them was emitted. It
	// costs one look at an index for each trigger.
	OldestSignals(ctx context.Context, after string, n int) ([]OldestSignal, error)
	// HasSignal reports whether there is a signal with a key.
	HasSignal(ctx context.Context, key SignalKey) (bool, error)
	// Signals returns up to f.Limit signals, the latest first. A full Page may have fewer.
	Signals(ctx context.Context, f SignalFilter) ([]flow.Signal, error)
	// NewSignals returns up to n signals that are new, the oldest first, but those that are put aside (AsideMatching) until after now. A
	// full Page may have fewer.
	NewSignals(ctx context.Context, now time.Time, n int) ([]flow.Signal, error)
	// SignalsAbout returns up to n signals with the trigger and the subject behind a place, the oldest first. A full Page may have
	// fewer. The place is that of a signal returned before, or a time with the number 0: signals of that time and later.
	SignalsAbout(ctx context.Context, trigger, subject string, after SignalPlace, n int) ([]flow.Signal, error)
}

// OldestSignal says when the oldest signal of a trigger was emitted.
type OldestSignal struct {
	Trigger string
	At      time.Time
}

// SignalPlace is a place in the order of signals: by time, and by number where times are the same.
type SignalPlace struct {
	At     time.Time
	Number int64
}

// PlaceOf is the place of a signal.
func PlaceOf(s *flow.Signal) SignalPlace { return SignalPlace{s.At, s.Number} }

// SignalFilter selects signals. Zero fields select everything.
type SignalFilter struct {
	Trigger string
	Subject string
	Source  string
	Since   time.Time   // emitted then or later
	Before  SignalPlace // cursor: the place of the last signal of the page before
	Limit   int
}

// Signal adds a signal to the bytes of a page.
func (p *Page) Signal(s *flow.Signal) {
	const fixed = 300
	n := fixed + len(s.Trigger) + len(s.Key) + len(s.Subject) + len(s.Source) + len(s.Data)
	for k, v := range s.Headers {
		n += len(k) + len(v)
	}
	for _, r := range s.Rules {
		n += len(r)
	}
	*p += Page(n)
}
