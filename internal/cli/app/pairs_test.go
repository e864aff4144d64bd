package app

import (
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A flag of pairs keeps every character of a value: quotes at its end, commas and =.
func TestPairs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, several map[string]string // nil: refused
		args         []string
	}{
		{map[string]string{"a": "1"}, map[string]string{"a": "1"}, []string{"a=1"}},
		{map[string]string{"a": ""}, map[string]string{"a": ""}, []string{"a="}},
		{map[string]string{"a": `say "hi"`}, map[string]string{"a": `say "hi"`}, []string{`a=say "hi"`}},
		{map[string]string{"a": `"x,y"`}, map[string]string{"a": `"x,y"`}, []string{`a="x,y"`}},
		{map[string]string{"a": "1,b"}, map[string]string{"a": "1,b"}, []string{"a=1,b"}},
		{map[string]string{"a": "1,b=2"}, map[string]string{"a": "1", "b": "2"}, []string{"a=1,b=2"}},
		{map[string]string{`"a`: `1,b=2"`}, map[string]string{"a": "1,b=2"}, []string{`"a=1,b=2"`}},
		{map[string]string{"a": "1=2"}, map[string]string{"a": "1=2"}, []string{"a=1=2"}},
		{map[string]string{"a": "1=2,"}, nil, []string{"a=1=2,"}},
		{map[string]string{"a": "1=2\n3"}, nil, []string{"a=1=2\n3"}},
		{map[string]string{"a": `x=1,"y"`}, nil, []string{`a=x=1,"y"`}},
		{map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "2"}, []string{"a=1", "b=2"}},
		{nil, nil, []string{"a=1", "a=2"}},
		{map[string]string{"a": "1,a=2"}, nil, []string{"a=1,a=2"}},
		{nil, nil, []string{"a"}},
		{nil, nil, []string{""}},
		{nil, nil, []string{"=1"}},
	} {
		for name, want := range map[string]map[string]string{"one": c.one, "several": c.several} {
			f := pflag.NewFlagSet("f", pflag.ContinueOnError)
			f.SetOutput(io.Discard)
			var one map[string]string
			several := map[string]string{"cpu": "10s"}
			PairVar(f, &one, "one", "")
			PairsVar(f, &several, "several", "")
			var args []string
			for _, a := range c.args {
				args = append(args, "--"+name+"="+a)
			}
			got := map[string]*map[string]string{"one": &one, "several": &several}[name]
			switch err := f.Parse(args); {
			case (err == nil) != (want != nil):
				t.Errorf("--%s %q: %v, %v", name, c.args, *got, err)
			case err == nil && !maps.Equal(*got, want):
				t.Errorf("--%s %q: %v, want %v", name, c.args, *got, want)
			}
			if d := f.Lookup("several").DefValue; d != "cpu=10s" {
				t.Errorf("the default is shown as %q", d)
			}
			if name == "one" && !strings.Contains(f.FlagUsages(), "--one name=value") {
				t.Errorf("%s", f.FlagUsages())
			}
		}
	}
}
