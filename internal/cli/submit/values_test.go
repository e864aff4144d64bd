package submit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cli/app"
)

// The values of --set and --input arrive unchanged, or are refused. "" stands for a refusal.
func TestValuesOfFlags(t *testing.T) {
	t.Parallel()
	bom := filepath.Join(t.TempDir(), "bom.json")
	if err := os.WriteFile(bom, []byte("\uFEFF{\"n\": 1e400}\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--set", "n=9007199254740993"}, `{"n":9007199254740993}`},
		{[]string{"--set", "n=18446744073709551616"}, `{"n":18446744073709551616}`},
		{[]string{"--set", "n=1e400"}, `{"n":1e400}`},
		{[]string{"--set", "n=-0"}, `{"n":-0}`},
		{[]string{"--set", "n=007"}, `{"n":"007"}`},
		{[]string{"--set", "n=1_000"}, `{"n":"1_000"}`},
		{[]string{"--set", "n=NaN"}, `{"n":"NaN"}`},
		{[]string{"--set", "n=null"}, `{"n":null}`},
		{[]string{"--set", "n="}, `{"n":""}`},
		{[]string{"--set", `n="\ud83d\ude00"`}, `{"n":"😀"}`},
		{[]string{"--set", "n=a=b"}, `{"n":"a=b"}`},
		{[]string{"--set", "n=[1,2"}, `{"n":"[1,2"}`},
		{[]string{"--set", `n={"a":1,"a":2}`}, ""},
		{[]string{"--set", `n=[{"a":1,"a":2}]`}, ""},
		{[]string{"--set", `n="\ud800"`}, ""},
		{[]string{"--set", "n=\xff"}, ""},
		{[]string{"--set", "n"}, ""},
		{[]string{"--set", "=1"}, ""},
		{[]string{"--set", "a..b=1"}, ""},
		{[]string{"--set", "a.=1"}, ""},
		{[]string{"--set", "a.b=1", "--set", "a.c=2"}, `{"a":{"b":1,"c":2}}`},
		{[]string{"--set", `a={"b":1}`, "--set", "a.c=2"}, `{"a":{"b":1,"c":2}}`},
		{[]string{"--set", "a=1", "--set", "a=2"}, ""},
		{[]string{"--set", "a.b=1", "--set", `a={"c":2}`}, ""},
		{[]string{"--set", "a=1", "--set", "a.b=2"}, ""},
		{[]string{"--set", "ab=1", "--set", "a=2"}, `{"a":2,"ab":1}`},
		{[]string{"--input", `{"n": 1e400}`}, `{"n": 1e400}`},
		{[]string{"--input", `{"n": 1e400, "m": 18446744073709551616}`, "--set", "m=1"}, `{"m":1,"n":1e400}`},
		{[]string{"--input", "@" + bom}, `{"n": 1e400}`},
		{[]string{"--input", "@" + empty}, ""},
		{[]string{"--input", ""}, ""},
		{[]string{"--input", " "}, ""},
		{[]string{"--input", "null"}, "null"},
		{[]string{"--input", `{"n":1,"n":2}`}, ""},
		{[]string{"--input", `{"n":"\ud800"}`}, ""},
		{[]string{"--input", "{\"n\":\"\xff\"}"}, ""},
		{[]string{"--input", `{"n":NaN}`}, ""},
		{[]string{"--input", `{"n":01}`}, ""},
		{[]string{"--input", `{} {}`}, ""},
		{nil, "nothing"},
	} {
		var o RunOptions
		f := pflag.NewFlagSet("f", pflag.ContinueOnError)
		app.JSONVar(f, &o.Input, "input", "", "")
		f.StringArrayVar(&o.Set, "set", nil, "")
		err := f.Parse(c.args)
		var got []byte
		if err == nil {
			got, err = InputOf(&app.App{In: strings.NewReader("")}, &o)
		}
		if got == nil && err == nil {
			got = []byte("nothing")
		}
		if (err == nil) != (c.want != "") || err == nil && !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("%q: %s, %v; want %q", c.args, got, err, c.want)
		}
	}
}
