package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// Overrides, which are outputs given by hand, are part of a rerun's request, which is read each time the rerun is decided about: they are
// few and short.
const (
	maxOverrides     = 100
	maxOverrideBytes = 64 << 10 // of all of a rerun together
)

// somebody is the recorded author of an output whose request names no author.
const somebody = "somebody"

// checkOutputs refuses outputs that items of a level cannot have.
func (l *level) checkOutputs(rec *recording) error {
	o, w := l.named, l.def
	seen := map[orchestration.Item]bool{}
	for i := range o.Outputs {
		g := &o.Outputs[i]
		item := orchestration.Item{Task: g.Task, Index: g.Index}
		t := w.Task(g.Task)
		if t == nil || t.Foreach == nil && g.Index != orchestration.AllItems || t.Foreach != nil && g.Index != orchestration.AllItems {
			if err := checkItems("outputs", l.text, w, rec, []orchestration.Item{item}); err != nil {
				return err
			}
		}
		text, prefix := l.text+item.Text(), ""
		if l.text != "" {
			prefix = text + ": "
		}
		if t.Foreach != nil && g.Index == orchestration.AllItems {
			return fault.New("outputs", text, prefix+"the task has a foreach: each of its items has an output of its own", fmt.Sprintf("give %s[0], %s[1] and so on", text, text))
		}
		named := func(f orchestration.Item) bool {
			return f.Task == g.Task && (f.Index == orchestration.AllItems || f.Index == g.Index || t.Foreach == nil)
		}
		switch {
		case seen[item]:
			return fault.New("outputs", text, prefix+"it is given two outputs", "leave out one of them")
		case slices.ContainsFunc(o.From, named) || slices.ContainsFunc(o.Only, named):
			return fault.New("outputs", text, prefix+"what is given an output does not run, and it was named to run", "leave out one of the two")
		case !json.Valid(g.Output):
			return fault.New("outputs", text, prefix+"the output is not JSON", `write texts in quotes: "text"`)
		case len(blob.References(g.Output)) > 0:
			return fault.New("outputs", text, prefix+"the output names a file, which nothing would keep", "give what is in the file")
		}
		seen[item] = true
	}
	return nil
}

// singleIndex sets index 0 for the output of a task without foreach.
func singleIndex(all []flow.OutputOverride) []flow.OutputOverride {
	all = slices.Clone(all)
	for i := range all {
		all[i].Index = max(0, all[i].Index)
	}
	return all
}

// applyOverrides replaces the outputs of a task's items by the given ones.
func applyOverrides(out *orchestration.Output, t *definition.Task, n int, r *flow.Request) {
	if t.Foreach == nil {
		if t.Repeat != nil && n > 1 {
			return // the output was given for the first round, and this is a later one
		}
		if override := r.OverrideOf(t.Name, 0); override != nil {
			out.Single = override
		}
		return
	}
	for i := range out.Items {
		if override := r.OverrideOf(t.Name, i); override != nil {
			out.Items[i] = override
		}
	}
}
