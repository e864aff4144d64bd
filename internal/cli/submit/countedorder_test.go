package submit

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCountedOrder(t *testing.T) {
	t.Parallel()
	want := []string{"", "1", "2", "10", "a", "a1", "a2b", "a02c", "a10", "b/1", "b/1x"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, countedOrder)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
