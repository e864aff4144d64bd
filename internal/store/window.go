package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// WindowLock is the concurrency key under whose lock a window is read and written: "@window:", the rule, and the window's key. No execution has
// such a key.
const WindowLock = "@window:"

// WindowKey names a window: there is one at a time of a rule and a key.
type WindowKey struct{ Rule, Key string }

// Lock is the concurrency key that locks the window.
func (k WindowKey) Lock() string { return WindowLock + k.Rule + ":" + k.Key }

// Window holds signals for one execution. It is there exactly while enforcements are held in it.
type Window struct {
	WindowKey
	Opened time.Time
	Wake   time.Time // when it closes, unless another signal comes before
	Count  int       // signals that are held
	Bytes  int64     // of their data
	First  int64     // numbers of signals
	Last   int64
}

// Closing ends a window: what has been made of one of its signals, which leads, and with it of all others, or of those named.
type Closing struct {
	WindowKey
	Lead    int64   // number of the signal
	Signals []int64 // numbers of those that it is about, the leading one among them; nil: all
	// Rest is the window that holds the others from then on; nil: there are none.
	Rest *Window

	State     flow.EnforcementState
	Execution flow.ID
	Reason    flow.Reason
}

// Windows loads windows.
type Windows interface {
	// Windows reads those windows that are there. The caller has locked each by its WindowLock.
	Windows(ctx context.Context, keys []WindowKey) (map[WindowKey]Window, error)
	// HeldIn returns up to n of the signals that a window holds, in the order of (time, number) in which they were held. The caller
	// has locked the window.
	HeldIn(ctx context.Context, key WindowKey, n int) ([]SignalPlace, error)
}

// WindowReader answers readers about windows.
type WindowReader interface {
	// DueWindows returns up to n windows whose Wake is not after now, earliest first, and the earliest Wake beyond them (zero: none).
	DueWindows(ctx context.Context, now time.Time, n int) ([]Window, time.Time, error)
	// Window returns a window, or ErrNotFound.
	Window(ctx context.Context, key WindowKey) (Window, error)
	// HeldSignals returns up to n of the signals that a window holds, in the order of HeldIn. A full Page may have fewer.
	HeldSignals(ctx context.Context, key WindowKey, n int) ([]flow.Signal, error)
}
