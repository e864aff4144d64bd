// Package exit contains the exit codes of the command line, and the errors that carry them.
package exit

import (
	"fmt"

	"github.com/pawl-run/pawl/api"
)

// Exit codes. Scripts rely on them.
const (
	OK          = 0
	General     = 1
	Misuse      = 2
	Failed      = 3   // the execution failed
	Cancelled   = 4   // the execution was cancelled
	TimedOut    = 5   // the execution timed out
	Interrupted = 130 // Ctrl-C
)

// Error is an error with the exit code. Without a message nothing is printed.
type Error struct {
	Code int
	Err  error
}

// Error is the message; without one, the code.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error {
	return &Error{Code: Misuse, Err: fmt.Errorf(format, args...)}
}

func CodeOf(s api.Status) int {
	switch s {
	case api.Completed:
		return OK
	case api.Cancelled:
		return Cancelled
	case api.TimedOut:
		return TimedOut
	}
	return Failed
}
