package language

import (
	"slices"
	"strings"
	"testing"
)

func TestNamesAreWellFormedAndMeanOneThing(t *testing.T) {
	t.Parallel()
	seen, extensions := map[string]string{}, map[string]string{}
	for _, n := range builtIn {
		for _, name := range append([]string{n.Name}, n.Aliases...) {
			if err := CheckName(name); err != nil {
				t.Error(err)
			}
			if other, twice := seen[name]; twice {
				t.Errorf("%q means %s and %s", name, other, n.Name)
			}
			seen[name] = n.Name
			if got, ok := BuiltIn().Resolve(name); !ok || got != n.Name {
				t.Errorf("%q resolves to %q", name, got)
			}
		}
		for _, e := range n.Extensions {
			if other, twice := extensions[e]; twice {
				t.Errorf(".%s is of %s and of %s", e, other, n.Name)
			}
			extensions[e] = n.Name
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	base := BuiltIn()
	s := base.With(Name{Name: "kotlin", Aliases: []string{"kt"}, Extensions: []string{"kts"}}, Name{Name: "ruby", Aliases: []string{"mruby"}})
	for name, want := range map[string]string{"KT": "kotlin", "mruby": "ruby", "Python3": "python", "rb": "", "": ""} {
		if got, _ := s.Resolve(name); got != want {
			t.Errorf("%q resolves to %q, want %q", name, got, want)
		}
	}
	if got, _ := s.OfExtension("kts"); got != "kotlin" {
		t.Errorf(".kts is %q", got)
	}
	if _, ok := base.Resolve("kotlin"); ok || len(s.Names()) != len(base.Names())+1 || !slices.Contains(s.All(), "kt") {
		t.Error("the set that it was made from has changed, or the new one is wrong")
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "C", "1a", "a b", "a/b", "é", "-x", string(make([]byte, 41))} {
		if CheckName(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
	for _, good := range []string{"c", "c++", "f#", "objective-c", "python3.12", "a_b"} {
		if err := CheckName(good); err != nil {
			t.Error(err)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"pypy3": `write "python" for the version that the worker has`, "python3.11": `write "python"`, "Java17": `write "java"`, "node20": `write "javascript"`,
		"cpp17": `write "c++", and the standard in std`, "c++20": `write "c++", and the standard`, "c11": `write "c", and the standard`, "clang": `write "c" `, "ruby-3": `write "ruby"`,
		"kotlin": "", "python": "", "17": "", "": "", "-": "",
	} {
		if got := BuiltIn().Suggest(in); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
