package flow

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// Rerun is the part of a request that only reruns, their items and retries have. Few requests are one of these, so they
// point to it: all others are 176 bytes smaller wherever they are loaded and copied.
type Rerun struct {
	// First is the first execution of the chain of reruns; zero: it is RerunOf.
	First ID
	// Only are the only tasks, or items of tasks, that run again, and LeftOut the tasks that are skipped because of that. Both nil: the whole
	// workflow runs again.
	Only, LeftOut []string
	// Outputs are outputs that a person has set for items of the rerun, which end with them and do not run. OverriddenBy is that person, in
	// the rerun and in each of these items; it is empty in all other requests.
	Outputs      []OutputOverride
	OverriddenBy string
	// Beneath are the workflows beneath the rerun, at any depth, of which only parts run again, because a path leads into them. Such a
	// workflow has the id of the rerun in KeptWith, and its path from there in KeptAs: the outcomes that its tasks reuse are stored with the
	// rerun.
	Beneath  []Beneath
	KeptWith ID
	KeptAs   string
	// RetryOf is, for a retry, the execution whose whole request it repeats. A retry is not a rerun: RerunOf is zero.
	RetryOf ID
}

// OutputOverride is an output that an item of a workflow ends with instead of running.
type OutputOverride struct {
	Task   string
	Index  int
	Output json.RawMessage
}

// Beneath is a workflow beneath a rerun of which only parts run again.
type Beneath struct {
	Path         string            // from the rerun, by tasks and their items: "deploy[0]", "deploy[0]/verify[2]"
	Of           ID                // the execution that is run again
	First        ID                // the first of the chain of its reruns
	Version      int               // of its definition, as planned
	Work         [sha256.Size]byte // the hash of its work, as planned
	Only         []string          // as in Rerun, like the next fields
	LeftOut      []string
	Outputs      []OutputOverride
	OverriddenBy string
}

// AsRerun is a copy of Rerun; the zero value if that is nil.
func (r *Request) AsRerun() Rerun {
	if r.Rerun == nil {
		return Rerun{}
	}
	return *r.Rerun
}

// RetryOf is the execution whose whole request this one repeats; zero if this is not a retry.
func (r *Request) RetryOf() ID {
	if r.Rerun == nil {
		return ID{}
	}
	return r.Rerun.RetryOf
}

// RerunFirst is the first execution of the chain of reruns; zero if this is not a rerun.
func (r *Request) RerunFirst() ID {
	if r.Rerun == nil || r.Rerun.First.IsZero() {
		return r.RerunOf
	}
	return r.Rerun.First
}

// MakeRerun makes this the request of a whole rerun of an execution. first is the first execution of its chain, which
// is the execution itself unless that is a rerun.
func (r *Request) MakeRerun(original, first ID) {
	r.RerunOf, r.Rerun = original, nil
	if first != original {
		r.Rerun = &Rerun{First: first}
	}
}

// RunsPart reports whether this is a rerun that leaves tasks out or has given outputs: its outcome may not be that of the whole work.
func (r *Request) RunsPart() bool {
	again := r.Rerun
	return again != nil && len(again.Only)+len(again.Outputs)+len(again.Beneath) > 0
}

// OverrideOf returns the given output of an item; nil: it has none.
func (r *Request) OverrideOf(task string, index int) json.RawMessage {
	if r.Rerun == nil {
		return nil
	}
	for i := range r.Rerun.Outputs {
		if o := &r.Rerun.Outputs[i]; o.Task == task && o.Index == index {
			return o.Output
		}
	}
	return nil
}

// WasOverridden reports whether it is an item of a rerun that ends with an output from the client.
func (r *Request) WasOverridden() bool {
	return r.Rerun != nil && r.Rerun.OverriddenBy != "" && len(r.Rerun.Outputs) == 0
}

// ItemPath is the path of an item of the workflow at a path; "" is the rerun itself.
func ItemPath(above, task string, index int) string {
	if above != "" {
		above += "/"
	}
	return fmt.Sprintf("%s%s[%d]", above, task, index)
}

// BeneathAt is the plan for an item that is a workflow of which only parts run again; nil for every other item.
func (r *Request) BeneathAt(task string, index int) *Beneath {
	again := r.Rerun
	if again == nil || len(again.Beneath) == 0 {
		return nil
	}
	path := ItemPath(again.KeptAs, task, index)
	for i := range again.Beneath {
		if again.Beneath[i].Path == path {
			return &again.Beneath[i]
		}
	}
	return nil
}

// RunBeneath makes this the request of a workflow of which only parts run again, as b says. It is an item of the
// workflow above, whose request is w.
func (r *Request) RunBeneath(above ID, w *Request, b *Beneath) {
	again := &Rerun{First: b.First, Only: b.Only, LeftOut: b.LeftOut, Outputs: b.Outputs, OverriddenBy: b.OverriddenBy,
		KeptWith: w.KeptBy(above), KeptAs: b.Path}
	if again.First == b.Of {
		again.First = ID{}
	}
	for _, other := range w.AsRerun().Beneath {
		if strings.HasPrefix(other.Path, b.Path+"/") {
			again.Beneath = append(again.Beneath, other)
		}
	}
	r.RerunOf, r.Rerun = b.Of, again
	r.Cache = nil // its outcome may be that of a part
}

// KeptBy is the execution with which the reused outcomes of this one's tasks are stored; own is this one's id.
func (r *Request) KeptBy(own ID) ID {
	if r.Rerun == nil || r.Rerun.KeptWith.IsZero() {
		return own
	}
	return r.Rerun.KeptWith
}

// KeptTask is the name under which the reused outcomes of a task are stored: in a workflow beneath a rerun, with its path.
func (r *Request) KeptTask(task string) string {
	if r.Rerun == nil || r.Rerun.KeptAs == "" {
		return task
	}
	return r.Rerun.KeptAs + "/" + task
}
