package runtime

import "errors"

// ErrUnavailable means that this host lacks something that the runtime needs; the message says what and how to get
// it. No program has been started.
var ErrUnavailable = errors.New("runtime unavailable")

// ErrSpec means that the Spec asks for something impossible; the message names the field, the value and the fix.
var ErrSpec = errors.New("invalid run")

// TakenError is the error of a Start whose host ended the run before its program began, for example because a node was drained.
type TakenError struct {
	Cause Cause
	Err   error // the description; wraps ErrUnavailable
}

func (e *TakenError) Error() string { return e.Err.Error() }
func (e *TakenError) Unwrap() error { return e.Err }
