// Package fault is the engine's refusal of a request: all its problems, each with the place, the value and the fix, and
// the bounds that requests are checked against.
package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// Bounds of what callers send.
const (
	InputLimit   = 16 << 20 // bytes; larger input belongs into a blob
	ActionLimit  = 200      // bytes of the name of an action or workflow
	LabelsLimit  = 64
	LabelLimit   = 256  // bytes of a label's name and of its value
	ReasonLimit  = 4096 // bytes of the reason of a cancel: it is shown in lists
	AuthorLimit  = 200  // bytes of the name of the author of a change
	KeyLimit     = 512  // bytes of a concurrency or idempotency key
	TimeoutLimit = 366 * 24 * time.Hour
)

// Invalid lists everything that is wrong with a request. Nothing of the request has been stored.
type Invalid struct{ Problems []problem.Problem }

func (v *Invalid) Error() string {
	lines := make([]string, len(v.Problems))
	for i, p := range v.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "; ")
}

// New refuses a request for one problem.
func New(path, value, message, fix string) *Invalid {
	return &Invalid{[]problem.Problem{{Path: path, Value: value, Message: message, Fix: fix}}}
}

// NoSuch means that the subject of a request does not exist, with a suggestion. It is ErrNotFound of the store.
type NoSuch struct{ Say, Fix string }

func (e *NoSuch) Error() string { return e.Say + ": " + e.Fix }

// Unwrap makes it ErrNotFound.
func (e *NoSuch) Unwrap() error { return store.ErrNotFound }

// Missing reports whether an error means that the requested thing does not exist.
func Missing(err error) bool { return errors.Is(err, store.ErrNotFound) }

// List collects what is wrong with a request.
type List []problem.Problem

func (f *List) Add(path, value, message, fix string) {
	*f = append(*f, problem.Problem{Path: path, Value: value, Message: message, Fix: fix})
}

func (f *List) Text(path, value string, limit int) {
	if bad := BadText(value, limit); bad != "" {
		f.Add(path, Short(value), bad, "shorten it, or remove the byte")
	}
}

func (f *List) Number(path string, n, least, most int) {
	if n < least || n > most {
		f.Add(path, fmt.Sprint(n), "is out of range", fmt.Sprintf("give %d to %d", least, most))
	}
}

func (f *List) Span(path string, d time.Duration) {
	if d < 0 || d > TimeoutLimit {
		f.Add(path, d.String(), "is out of range", "give a duration above 0 and up to 366 days")
	}
}

// BadText returns what is wrong with a text; "" if nothing is.
func BadText(s string, limit int) string {
	switch {
	case len(s) > limit:
		return fmt.Sprintf("has %d bytes, more than the %d allowed", len(s), limit)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return "has a NUL byte or is not UTF-8"
	}
	return ""
}

// CheckText refuses a text in which BadText finds a fault.
func CheckText(path, text string, limit int, fix string) error {
	if bad := BadText(text, limit); bad != "" {
		return New(path, Short(text), bad, fix)
	}
	return nil
}

// Short shortens a text for a problem.
func Short(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%.*q…", most, s)
	}
	return fmt.Sprintf("%q", s)
}

func BadJSON(b json.RawMessage, limit int) string {
	switch {
	case b == nil:
		return ""
	case len(b) > limit:
		return fmt.Sprintf("has %d bytes, more than the %d allowed", len(b), limit)
	case !utf8.Valid(b):
		return "is not UTF-8"
	case !json.Valid(b):
		return "is not JSON"
	}
	return ""
}

// Passing reports whether an error lies in the database or the caller, and not in the data: the same call may succeed
// later.
func Passing(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Panicked is the error made from a panic.
type Panicked struct {
	Value any
	Stack []byte
}

func (p *Panicked) Error() string { return fmt.Sprintf("%s\n%s", p.Short(), p.Stack) }

// Short is the error without its stack.
func (p *Panicked) Short() string {
	return fmt.Sprintf("a decision panicked, which is a defect of Pawl: %v", p.Value)
}

// Recovered, deferred, turns a panic of a decision into its error, a Panicked: the batch is halved until the request that causes it is
// alone, and the process continues. A goroutine that works on callers' data defers it too, because nothing above it recovers.
func Recovered(err *error) {
	if p := recover(); p != nil {
		*err = &Panicked{p, debug.Stack()}
	}
}
