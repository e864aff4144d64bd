package flow

import (
	"slices"
	"testing"
)

func TestLanes(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"default", ""}, {"default", "docker"}, {"gpu", "kubernetes"}} {
		if q, r := SplitLane(Lane(pair[0], pair[1])); q != pair[0] || r != pair[1] {
			t.Errorf("%q became %q and %q", pair, q, r)
		}
	}
	got := Lanes([]string{"a", "b"}, []string{"code", OfferRuntime("docker"), "runtime:", "code:", OfferRuntime("kubernetes"), OfferLanguage("f#")})
	want := []string{"a", "b", Lane("a", "docker"), Lane("b", "docker"), Lane("a", "kubernetes"), Lane("b", "kubernetes"), Lane("a", "code:f#"), Lane("b", "code:f#")}
	if !slices.Equal(got, want) {
		t.Errorf("lanes %q, want %q", got, want)
	}
}
