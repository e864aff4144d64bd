package engine

import (
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// The reuses of a rerun are written together with it: a claim in the same transaction writes older rows first, and the rerun later. When
// the reuses were written with the first of these, they were lost, and everything ran.
func TestReusesGoWithTheirRerun(t *testing.T) {
	t.Parallel()
	again := flow.Submit(flow.ID{1}, flow.Request{Kind: flow.KindWorkflow, RerunOf: flow.ID{2}})
	draft := func(flow.ID) *flow.Draft { return again }
	for name, other := range map[string][]*flow.Draft{"alone": nil, "beside another": {flow.Submit(flow.ID{3}, flow.Request{})}} {
		c := changes{drafts: append([]*flow.Draft{again}, other...), workflows: store.WorkflowRows{Reuses: []store.Reuse{{Workflow: again.ID, Task: "a"}}}}
		if d, _ := c.take(func(x *flow.Draft) bool { return x == again }, draft); len(d.Workflows.Reuses) != 0 || len(d.Drafts) != len(other) {
			t.Errorf("%s: before the rerun %+v is written", name, d)
		}
		if d, some := c.take(func(*flow.Draft) bool { return false }, draft); !some || len(d.Workflows.Reuses) != 1 || len(d.Drafts) != 1 {
			t.Errorf("%s: with the rerun %+v is written", name, d)
		}
	}
}
