package fault

import (
	"errors"

	"github.com/pawl-run/pawl/internal/store"
)

// ErrClosed is returned by a stopping engine.
var ErrClosed = errors.New("engine is stopping")

// ErrOverloaded is returned when more requests are pending than can be committed soon.
var ErrOverloaded = errors.New("overloaded: too many requests are pending")

// OfBatch reports whether a transaction failed because of what it was to write: the rules or the store refuse it, it
// panicked, or its rows have changed (store.ErrConflict). Then other requests can be committed. False: the database
// does not answer, the caller has given up, or the engine is full or stopping, and other requests would fail as well.
func OfBatch(err error) bool {
	return !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrClosed) && !Passing(err)
}

// Lasting reports whether the rules or the store refuse what a transaction was to write, so that a repetition fails too. It is OfBatch
// without conflicts, which another try may not meet.
func Lasting(err error) bool { return OfBatch(err) && !errors.Is(err, store.ErrConflict) }

// Damaged is the error of a row that cannot be decoded.
func Damaged(why string) error { return errors.New(why) }
