package task

import (
	"encoding/json"

	"github.com/pawl-run/pawl/api"
)

// CaseDigest is the summary of the cases in an attempt's output for the event of its end; nil: there are no cases.
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
