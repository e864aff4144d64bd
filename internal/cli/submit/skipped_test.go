package submit

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/terminal"
)

// A skipped task is shown with the time of the decision, not with the time at which the client noticed it.
func TestSkippedTasksHaveTheTimeOfTheirDecision(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
	tasks := []api.Task{
		{Name: "last", Needs: []string{"chained", "b"}, Status: "skipped"},
		{Name: "chained", Needs: []string{"skipped"}, Status: "skipped"},
		{Name: "skipped", Needs: []string{"a"}, Status: "skipped"},
		{Name: "first", Status: "skipped"},
		{Name: "a", Status: api.Completed, FinishedAt: at(2)},
		{Name: "b", Status: api.Failed, FinishedAt: at(5)},
		{Name: "never", Needs: []string{"a", "open"}, Status: "skipped"},
		{Name: "open", Needs: []string{"b"}, Status: "pending"},
	}
	tree := terminal.Node{Started: begun, Finished: at(9)}
	for i := range tasks {
		tree.Children = append(tree.Children, terminal.Node{Name: tasks[i].Name, Since: tasks[i].FinishedAt})
	}
	dateSkipped(&tree, tasks)
	for i, want := range []time.Time{at(5), at(2), at(2), begun, at(2), at(5), at(9), {}} {
		if got := tree.Children[i].Since; !got.Equal(want) {
			t.Errorf("%s: %s, want %s", tasks[i].Name, got, want)
		}
	}
}
