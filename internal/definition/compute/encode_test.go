package compute

import (
	"fmt"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// A decoded value is written in the same way as CEL's form of it, and counts as many values.
func TestEncodedAsCELWouldBe(t *testing.T) {
	t.Parallel()
	many := strings.Builder{}
	for i := range 40 {
		fmt.Fprintf(&many, `,"k%d":%d`, (i*7)%40, i)
	}
	for text, want := range map[string]string{
		`{"b":[1,2.5,-0.0,1e300,5.0,9007199254740993,true,false,null],"a":{"x":"<é\"\n"}}`: `{"a":{"x":"<é\"\n"},"b":[1,2.5,0,1e+300,5,9007199254740993,true,false,null]}`,
		`[{"z":{},"y":[]},[[{"n":1e21}]],"text"]`:                                          `[{"y":[],"z":{}},[[{"n":1e+21}]],"text"]`,
		`{"k":1` + many.String() + `}`:                                                     "",
		`7`:                                                                                `7`,
	} {
		v, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		e := encoder{MaxResult, maxEncoded}
		got, err := e.decoded(nil, v, 0)
		if err != nil || want != "" && string(got) != want {
			t.Errorf("%s is written as %s, %v; want %s", text, got, err, want)
		}
		again := encoder{MaxResult, maxEncoded}
		if cels, err := again.value(nil, types.DefaultTypeAdapter.NativeToValue(v), 0); err != nil || string(cels) != string(got) {
			t.Errorf("%s is written as %s, and as %s from CEL (%v)", text, got, cels, err)
		}
		if again.left != e.left {
			t.Errorf("%s counts as %d values, and as %d from CEL", text, maxEncoded-e.left, maxEncoded-again.left)
		}
	}
}
