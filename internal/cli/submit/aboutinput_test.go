package submit

import (
	"encoding/json"
	"testing"
)

func TestItemsAreKnownByWhatTheyWereGiven(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"language":"python","args":["kadane"]}`: " kadane",
		`{"name":"invoice","input":{}}`:           " invoice",
		`{"url":"https://example.com/a"}`:         " https://example.com/a",
		`{"for":5}`:                               "",
		`[1]`:                                     "",
		`{"args":["\u001b[31mred"]}`:              " red",
	} {
		if got := aboutInput(json.RawMessage(raw)); got != want {
			t.Errorf("aboutInput(%s) = %q, want %q", raw, got, want)
		}
	}
}
