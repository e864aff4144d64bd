package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/task"
)

// clean turns an output that cannot be recorded into a failure, before it can spoil a whole batch.
func clean(output json.RawMessage, err error) (json.RawMessage, error) {
	e, ok := errors.AsType[*task.Error](err)
	if ok {
		for _, raw := range []json.RawMessage{e.Output, e.Details} {
			if fault := check(raw); fault != nil {
				return nil, task.Errorf(flow.CodeHandlerError, "%s: %s; and what the handler gave with that cannot be recorded: %v", e.Code, e.Message, fault)
			}
		}
	}
	if fault := check(output); err == nil && fault != nil {
		return nil, task.Errorf(flow.CodeHandlerError, "the handler's output cannot be recorded: %v", fault)
	}
	if ok {
		e.Output, e.Details = storable(e.Output), storable(e.Details)
	}
	return storable(output), err
}

// storable replaces what not every database can keep in a text: bytes that are not UTF-8, and NUL.
func storable(raw json.RawMessage) json.RawMessage {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, replacement)
	}
	nul := []byte(`\u0000`)
	if !bytes.Contains(raw, nul) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] != '\\':
			out = append(out, raw[i])
		case bytes.HasPrefix(raw[i:], nul):
			out = append(out, replacement...)
			i += len(nul) - 1
		default: // a backslash and what it escapes go together
			out = append(out, raw[i], raw[i+1])
			i++
		}
	}
	return out
}

var replacement = []byte("\uFFFD")

// The bounds of what a handler gives back. Deeper JSON could not be read again within an event of a report.
const (
	mostOutput = 32 << 20
	mostDepth  = 1000
)

func check(raw json.RawMessage) error {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) > mostOutput:
		return fmt.Errorf("it has %d bytes and may have %d: keep it somewhere else and give its name", len(raw), mostOutput)
	case !json.Valid(raw):
		return fmt.Errorf("it is not JSON: %.40q", raw)
	case task.Depth(raw) > mostDepth:
		return fmt.Errorf("it is nested deeper than %d levels", mostDepth)
	}
	return nil
}
