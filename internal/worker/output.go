package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/strictjson"
	"github.com/pawl-run/pawl/internal/task"
)

// clean replaces an output that cannot be recorded by a failure. Otherwise the engine would refuse the whole report that
// contains it.
func clean(output json.RawMessage, err error) (json.RawMessage, error) {
	e, ok := errors.AsType[*task.Error](err)
	if ok {
		for _, given := range []struct {
			raw  json.RawMessage
			most int
		}{{e.Output, flow.MostOutput}, {e.Details, flow.MostData}} {
			if fault := check(given.raw, given.most); fault != nil {
				return nil, task.Errorf(flow.CodeHandlerError, "%s: %s; the output that came with this error cannot be recorded: %v", e.Code, e.Message, fault)
			}
		}
	}
	fault := check(output, flow.MostOutput)
	if fault == nil && !bytes.Equal(storable(output), output) {
		fault = errors.New("it has a NUL character (\\u0000) or bytes that are not UTF-8: write such bytes as base64")
	}
	if err == nil && fault != nil {
		return nil, task.Errorf(flow.CodeHandlerError, "the handler's output cannot be recorded: %v", fault)
	}
	if ok {
		e.Output, e.Details = storable(e.Output), storable(e.Details)
	}
	return output, err
}

// storable replaces characters that not every database can keep in a text: NUL, and bytes that are not UTF-8.
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
		default: // a backslash and the escaped character stay together
			out = append(out, raw[i], raw[i+1])
			i++
		}
	}
	return out
}

const replacementText = "\uFFFD"

var replacement = []byte(replacementText)

// mostDepth is how deep a handler's JSON may be nested. Deeper JSON could not be read within the event of a report.
const mostDepth = 1000

// check returns why a handler's JSON cannot be recorded.
func check(raw json.RawMessage, most int) error {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) > most:
		return fmt.Errorf("it has %d bytes (at most %d): store it elsewhere and return its name", len(raw), most)
	case !json.Valid(raw):
		return fmt.Errorf("it is not JSON: %.40q", raw)
	case strictjson.DeeperThan(raw, mostDepth) >= 0:
		return fmt.Errorf("it is nested deeper than %d levels", mostDepth)
	}
	return nil
}

// Bounds of an error's texts, in bytes. The texts are in an event's data as well, where one byte may become six.
const (
	mostCode    = 200
	mostMessage = 8 << 10
)

// brief makes a text short and valid enough for a record.
func brief(text string, most int) string {
	text = strings.ToValidUTF8(text, replacementText)
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:most], ""), len(text))
}
