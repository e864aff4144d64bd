package storetest

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// digits stores texts that look like numbers and that a float64 cannot distinguish: a filter finds exactly the right one, and inputs and
// outputs come back as they were written.
func digits(b *bench) {
	all := []string{
		"7", "007", "7.0", "+7", "0x7", "9007199254740992", "9007199254740993", "9007199254740993.0", "18446744073709551614", "18446744073709551615", "1e3", "1000", "1e400", "1e401", "-0", "0",
		"123456789012345678901234567890.5", "0.10000000000000000001", "0.1",
	}
	ids := map[string]flow.ID{}
	for _, text := range all {
		value := json.RawMessage(fmt.Sprintf(`{"n":%s,"t":%q}`, text, text))
		if !json.Valid(value) {
			value = json.RawMessage(fmt.Sprintf(`{"t":%q}`, text))
		}
		id := b.ended(text, value, func(r *flow.Request) {
			r.Labels, r.Action, r.Input = map[string]string{"id": text, text: "as a name"}, "a"+text, value
		})
		ids[text] = id
		x, err := b.s.Get(b.ctx(), id)
		must(b, err)
		equal(b, "input with "+text, string(x.Input), string(value))
		equal(b, "output with "+text, string(x.Outcome.Output), string(value))
	}
	for _, text := range all {
		for what, f := range map[string]store.Filter{
			"label": {Labels: map[string]string{"id": text}}, "name of a label": {Labels: map[string]string{text: "as a name"}}, "action": {Action: "a" + text}, "code": {Verdicts: []string{text}},
		} {
			f.Limit = 10
			found, err := store.List(b.ctx(), b.s, f)
			must(b, err)
			var got []flow.ID
			for _, x := range found {
				got = append(got, x.ID)
			}
			equal(b, what+" "+text, got, []flow.ID{ids[text]})
		}
	}
}
