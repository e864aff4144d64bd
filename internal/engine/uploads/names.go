package uploads

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
)

// Prefixes are the prefixes of all names of an execution's blobs.
func Prefixes(id flow.ID) []string {
	return []string{"logs/" + id.String(), "files/" + id.String()}
}

// Owns reports whether a blob is the execution's own.
func Owns(id flow.ID, name string) bool {
	return slices.ContainsFunc(Prefixes(id), func(prefix string) bool { return strings.HasPrefix(name, prefix+"/") })
}

// Named reports whether a string somewhere in the JSON is the name.
func Named(payload json.RawMessage, name string) bool {
	dec := json.NewDecoder(bytes.NewReader(payload))
	for {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		if token == name {
			return true
		}
	}
}
