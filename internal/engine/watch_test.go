package engine

import (
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// Callers that a commit tells of an end return together, and the committer waits for them: see pause. A caller that watches every
// change, or whose execution goes on, does not count.
func TestACommitCountsTheCallersThatItTellsOfAnEnd(t *testing.T) {
	b := newWatchers()
	ended := &flow.Draft{Execution: &flow.Execution{}}
	ended.ID, ended.Place = flow.ID{1}, flow.Finished
	running := &flow.Draft{Execution: &flow.Execution{}}
	running.ID, running.Place = flow.ID{2}, flow.Held
	b.add(ended.ID, true)
	b.add(ended.ID, true)
	b.add(ended.ID, false)
	b.add(running.ID, true)
	if n := b.changed([]*flow.Draft{ended, running}); n != 2 {
		t.Errorf("%d callers were told of an end; want 2", n)
	}
	if n := b.changed(nil); n != 0 {
		t.Errorf("a commit that changed nothing told %d callers", n)
	}
}
