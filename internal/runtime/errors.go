package runtime

import "errors"

// ErrUnavailable means that this host cannot give what the runtime promises; the message says what is missing and how
// to get it. No program has been started.
var ErrUnavailable = errors.New("runtime unavailable")

// ErrSpec means that the Spec asks for something impossible; the message names the field, the value and the fix.
var ErrSpec = errors.New("invalid run")
