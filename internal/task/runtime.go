package task

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// RuntimeFor names the runtime that a payload of a built-in kind cannot do without, as Offers names it; empty: the
// worker's own choice will do.
func RuntimeFor(kind flow.Kind, payload []byte) string {
	switch kind {
	case flow.KindCode:
		return askedRuntime(payload)
	case flow.KindContainer:
		if name := askedRuntime(payload); name != "" {
			return name
		}
		return AnyContainer
	}
	return ""
}

// askedRuntime reads one field. Most payloads do not have it, and then nothing is decoded.
func askedRuntime(payload []byte) string {
	if !bytes.Contains(payload, []byte(`"runtime"`)) {
		return ""
	}
	var asked struct {
		Runtime string `json:"runtime"`
	}
	if json.Unmarshal(payload, &asked) != nil {
		return "" // the handler says what is wrong with it
	}
	return asked.Runtime
}
