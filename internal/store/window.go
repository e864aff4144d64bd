package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// WindowLock is the prefix "@window:" of the concurrency key that locks a window while it is read and written; the rule and the window's
// key follow. No execution has such a key.
const WindowLock = "@window:"

// WindowKey identifies a window: a rule has at most one for each key at a time.
type WindowKey struct{ Rule, Key string }

// Lock returns the concurrency key that locks the window.
func (k WindowKey) Lock() string { return WindowLock + k.Rule + ":" + k.Key }

// Window collects signals for one execution. It exists as long as enforcements are buffered in it.
type Window struct {
	WindowKey
	Opened time.Time
	Wake   time.Time // when it closes, unless another signal comes first
	Count  int       // signals that it buffers
	Bytes  int64     // of their data
	First  int64     // numbers of signals
	Last   int64
}

// Closing ends a window. It records the outcome for the leading one of its signals, and with it for all others or for those in Signals.
type Closing struct {
	WindowKey
	Lead    int64   // number of the signal
	Signals []int64 // numbers of the signals with this outcome, including the leading one; nil: all
	// Rest is the window that buffers the other signals afterwards, or nil if there are none.
	Rest *Window

	State     flow.EnforcementState
	Execution flow.ID
	Reason    flow.Reason
}

// Windows loads windows.
type Windows interface {
	// Windows reads the existing ones among the windows. The caller has locked each by its WindowLock.
	Windows(ctx context.Context, keys []WindowKey) (map[WindowKey]Window, error)
	// BufferedIn returns up to n of the signals that a window buffers, in the order (time, number). The caller has locked the window.
	BufferedIn(ctx context.Context, key WindowKey, n int) ([]SignalPlace, error)
}

// WindowReader reads windows.
type WindowReader interface {
	// DueWindows returns up to n windows whose Wake is not after now, earliest first, and the earliest Wake of the others
	// (zero: none).
	DueWindows(ctx context.Context, now time.Time, n int) ([]Window, time.Time, error)
	// Window returns a window, or ErrNotFound.
	Window(ctx context.Context, key WindowKey) (Window, error)
	// BufferedSignals returns up to n of the signals that a window buffers, in the order of BufferedIn. It returns fewer if a Page is
	// full.
	BufferedSignals(ctx context.Context, key WindowKey, n int) ([]flow.Signal, error)
}

// WindowRows are the changes of a decision to windows.
type WindowRows struct {
	// Closed are windows that close; it is a conflict if one of the given signals is not buffered.
	Closed []Closing
	// Open are written under the locks of their keys. Dropped ones buffer no signal and are deleted, under the same locks.
	Open    []Window
	Dropped []WindowKey
}
