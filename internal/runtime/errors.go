package runtime

import "errors"

// ErrUnavailable means that this host cannot give what the runtime promises; the message says what is missing and how
// to get it. No program has been started.
var ErrUnavailable = errors.New("runtime unavailable")

// ErrSpec means that the Spec asks for something impossible; the message names the field, the value and the fix.
var ErrSpec = errors.New("invalid run")

// TakenError is the error of a Start whose host took the run away before its program began, such as a node that was drained.
type TakenError struct {
	Cause Cause
	Err   error // says it in words, and wraps ErrUnavailable
}

func (e *TakenError) Error() string { return e.Err.Error() }
func (e *TakenError) Unwrap() error { return e.Err }
