package listing

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// Under load the newest executions are all waiting: a watched list starts with running ones, however old they are.
func TestWatchedListsBeginWithWhatRuns(t *testing.T) {
	t.Parallel()
	stored := []api.Execution{ // newest first
		{ID: "e", Status: api.Scheduled}, {ID: "d", Status: api.Scheduled}, {ID: "c", Status: api.Running}, {ID: "b", Status: api.Scheduled},
		{ID: "a", Status: api.Running},
	}
	walk := func(f client.Filter) iter.Seq2[api.Execution, error] {
		return func(yield func(api.Execution, error) bool) {
			for _, x := range stored {
				if (len(f.Status) == 0 || slices.Contains(f.Status, x.Status)) && !yield(x, nil) {
					return
				}
			}
		}
	}
	for _, c := range []struct {
		l    Options
		f    client.Filter
		want string
	}{
		{Options{Selection: Selection{Limit: 3}}, client.Filter{}, "e d c"},
		{Options{Selection: Selection{Limit: 3}, Watch: true}, client.Filter{}, "c a e"},
		{Options{Selection: Selection{Limit: 1}, Watch: true}, client.Filter{}, "c"},
		{Options{Selection: Selection{Limit: 9}, Watch: true}, client.Filter{}, "c a e d b"},
		{Options{Selection: Selection{Limit: 9}, Watch: true}, client.Filter{Status: []api.Status{api.Scheduled}}, "e d b"},
	} {
		all, err := c.l.Pick(c.f, walk)
		var ids []string
		for _, x := range all {
			ids = append(ids, x.ID)
		}
		if got := strings.Join(ids, " "); got != c.want || err != nil {
			t.Errorf("%+v: %s (%v), want %s", c.l, got, err, c.want)
		}
	}
	broken := errors.New("broken")
	l := Options{Selection: Selection{Limit: 3}, Watch: true}
	if _, err := l.Pick(client.Filter{}, func(client.Filter) iter.Seq2[api.Execution, error] {
		return func(yield func(api.Execution, error) bool) { yield(api.Execution{}, broken) }
	}); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}
