package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// SignalKey identifies a signal, so that a repeated one is recognised.
type SignalKey struct{ Trigger, Key string }

// KeyOf returns the key of a signal; Key is "" if it has none.
func KeyOf(s *flow.Signal) SignalKey { return SignalKey{s.Trigger, s.Key} }

// KnownSignal is the signal with a key.
type KnownSignal struct {
	ID   flow.ID
	Hash [32]byte
}

// Signals keeps signals. They are written by Apply.
type Signals interface {
	// Signalled finds the signals with these keys.
	Signalled(ctx context.Context, keys []SignalKey) (map[SignalKey]KnownSignal, error)
	// SignalledBodies returns when the last signal with each of the bodies was emitted; unknown bodies are left out.
	SignalledBodies(ctx context.Context, bodies [][32]byte) (map[[32]byte]time.Time, error)
	// LockSignals loads and locks those of the signals that are new, and skips those that another transaction has locked.
	LockSignals(ctx context.Context, numbers []int64) ([]flow.Signal, error)
	// DropSignals deletes matched signals of a trigger that were emitted before a time, oldest first, with their enforcements and their rows
	// of uncorrelated signals, and returns how many. It stops after the signal that completes n rows or PageBytes of data.
	DropSignals(ctx context.Context, trigger string, before time.Time, n int) (int, error)
}

// SignalReader reads signals. A signal whose row cannot be decoded is returned with its Damage.
type SignalReader interface {
	// Signal returns a signal, or ErrNotFound.
	Signal(ctx context.Context, id flow.ID) (flow.Signal, error)
	// OldestSignals returns when the oldest signal of each of up to n triggers was emitted, sorted by name, beyond after. It costs one look-up
	// in an index for each trigger.
	OldestSignals(ctx context.Context, after string, n int) ([]OldestSignal, error)
	// HasSignal reports whether there is a signal with a key.
	HasSignal(ctx context.Context, key SignalKey) (bool, error)
	// Signals returns up to f.Limit signals, the latest first. It returns fewer if a Page is full.
	Signals(ctx context.Context, f SignalFilter) ([]flow.Signal, error)
	// NewSignals returns up to n new signals after a place, oldest first, without those that are put aside (AsideMatching) beyond now. It
	// returns fewer if a Page is full.
	NewSignals(ctx context.Context, now time.Time, after SignalPlace, n int) ([]flow.Signal, error)
	// SignalsAbout returns up to n signals with a trigger and a subject after a place, the oldest first. It returns fewer if a Page is full.
	// The place is that of a signal returned before, or a time with the number 0, which means signals at or after that time.
	SignalsAbout(ctx context.Context, trigger, subject string, after SignalPlace, n int) ([]flow.Signal, error)
}

// OldestSignal is when the oldest signal of a trigger was emitted.
type OldestSignal struct {
	Trigger string
	At      time.Time
}

// SignalPlace is a place in the order of signals: by time, and by number if times are equal.
type SignalPlace struct {
	At     time.Time
	Number int64
}

// PlaceOf returns the place of a signal.
func PlaceOf(s *flow.Signal) SignalPlace { return SignalPlace{s.At, s.Number} }

// SignalFilter selects signals. Zero fields select everything.
type SignalFilter struct {
	Trigger string
	Subject string
	Source  string
	Since   time.Time   // emitted at or after
	Before  SignalPlace // cursor: the place of the last signal of the previous page
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

// SignalRows are the changes of a decision to signals.
type SignalRows struct {
	// New are inserted; a second one with the same trigger and key is a conflict.
	New []flow.Signal
	// Matched are the numbers of new signals that become matched; a signal that is not new is a conflict.
	Matched []int64
	// Uncorrelated are numbers of signals for which open waits must still be checked; Correlated are those for which they have been checked.
	Uncorrelated, Correlated []int64
}
