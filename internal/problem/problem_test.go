package problem

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Problem{
		"f.yaml:3:5: tasks.a: it is missing (add it)": {File: "f.yaml", Line: 3, Column: 5, Path: "tasks.a", Message: "it is missing", Fix: "add it"},
		"f.yaml:3: it is missing":                     {File: "f.yaml", Line: 3, Message: "it is missing"},
		"f.yaml: it is missing":                       {File: "f.yaml", Message: "it is missing"},
		"3:5: it is missing":                          {Line: 3, Column: 5, Message: "it is missing"},
		"it is missing":                               {Message: "it is missing"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSorted(t *testing.T) {
	t.Parallel()
	b, a := Problem{File: "f", Line: 2, Message: "b"}, Problem{File: "f", Line: 1, Message: "a"}
	if got := (List{b, a, b}).Sorted().Error(); got != "f:1: a\nf:2: b" {
		t.Errorf("%q", got)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for want, parts := range map[string][2]string{"a": {"", "a"}, "a.b-c_1": {"a", "b-c_1"}, `a["b.txt"]`: {"a", "b.txt"}, `["é"]`: {"", "é"}, `a[""]`: {"a", ""}} {
		if got := Join(parts[0], parts[1]); got != want {
			t.Errorf("%q and %q make %s, want %s", parts[0], parts[1], got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"abcd": "abcd", "abcde": "abcd…", "abcé": "abc…"} {
		if got := Clip(s, 4); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"action", "labels", "priority"}
	for name, want := range map[string]string{
		"acton": `did you mean "action"?`, "lables": `did you mean "labels"?`, "Priority": `did you mean "priority"?`, "xyz": "one of action, labels, priority",
	} {
		if got := NearestOr(name, known, "one of"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := NearestOr("x", make([]string, mostListed+1), "one of"); got[len(got)-len("…"):] != "…" {
		t.Errorf("a long list is not cut: %q", got)
	}
}

// The letter sets only skip names that are not near. The result is the same as by the distances of all names.
func TestNearestOfManyIsTheNearestByDistance(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, 1+r.IntN(8))
		for i := range b {
			b[i] = "abcXé9-"[r.IntN(len("abcXé9-"))]
		}
		return string(b)
	}
	known := make([]string, 300)
	for i := range known {
		known[i] = word()
	}
	names := NamesOf(known)
	for range 2000 {
		name, want := word(), ""
		least := 1 + min(3, max(1, len(name)/3))
		for _, k := range known {
			if d := distance(strings.ToLower(name), strings.ToLower(k), least); d < least {
				want, least = fmt.Sprintf("did you mean %q?", k), d
			}
		}
		if got := names.Nearest(name); got != want {
			t.Fatalf("%q: %s, want %s", name, got, want)
		}
	}
}
