package task

import (
	"encoding/json"

	"github.com/pawl-run/pawl/api"
)

// CaseDigest is what the event with which an attempt of kind code ends says of the cases in its output; nil: there are none.
func CaseDigest(output json.RawMessage) json.RawMessage {
	d := api.DigestCases(output)
	if d == nil {
		return nil
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // numbers and texts always have a JSON form
	}
	return text
}
