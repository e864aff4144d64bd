package brokerrpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/handoff"
)

// The codes of failures in answers.
const (
	codeLost        = "session_lost"
	codeNotHeld     = "not_held"
	codeNoBlob      = "no_blob"
	codeBlobRefused = "blob_refused"
	codeRefused     = "refused"
	codeBadCall     = "bad_call"
	codeUnavailable = "unavailable"
)

var codes = map[string]error{
	codeLost: handoff.ErrSessionLost, codeNotHeld: handoff.ErrNotHeld, codeNoBlob: handoff.ErrNoBlob, codeBlobRefused: handoff.ErrBlobRefused,
	codeRefused: handoff.ErrRefused, codeBadCall: handoff.ErrBadCall, codeUnavailable: handoff.ErrUnavailable,
}

func codeFor(err error) string {
	for _, code := range []string{codeLost, codeNotHeld, codeNoBlob, codeBlobRefused, codeBadCall} {
		if errors.Is(err, codes[code]) {
			return code
		}
	}
	return codeUnavailable
}

// passing reports whether the same call may succeed a moment later.
func passing(err error) bool {
	return codeFor(err) == codeUnavailable &&
		(errors.Is(err, handoff.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

func errorOf(code, say string) error {
	switch known := codes[code]; {
	case code == codeRefused || code == codeBadCall:
		return fmt.Errorf("%w: %w: %s", handoff.ErrUnavailable, known, say)
	case known != nil:
		return fmt.Errorf("%w: %s", known, say)
	}
	return fmt.Errorf("%w: %s: %s", handoff.ErrUnavailable, code, say)
}
