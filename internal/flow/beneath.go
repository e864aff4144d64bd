package flow

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Beneath is a workflow beneath a rerun of which only parts run again.
type Beneath struct {
	Path    string            // from the rerun, by tasks and their items: "deploy[0]", "deploy[0]/verify[2]"
	Of      ID                // the execution that it runs again
	First   ID                // with which the chain of its reruns began
	Version int               // of its definition, for which it was planned
	Work    [sha256.Size]byte // the hash of what it is to do, for which it was planned
	Only    []string          // as of a Request, and so are the others
	LeftOut []string
	Outputs []GivenOutput
	GivenBy string
}

// ItemPath is the path of an item of the workflow that stands at a path; "": of the rerun itself.
func ItemPath(above, task string, index int) string {
	if above != "" {
		above += "/"
	}
	return fmt.Sprintf("%s%s[%d]", above, task, index)
}

// BeneathAt is what was planned for an item of this workflow; nil: it runs as every other one.
func (r *Request) BeneathAt(task string, index int) *Beneath {
	if len(r.Beneath) == 0 {
		return nil
	}
	path := ItemPath(r.KeptAs, task, index)
	for i := range r.Beneath {
		if r.Beneath[i].Path == path {
			return &r.Beneath[i]
		}
	}
	return nil
}

// RunBeneath makes this the request of a workflow that runs again in parts as an item of another, whose id and request are given.
func (r *Request) RunBeneath(above ID, w *Request, b *Beneath) {
	r.RerunOf, r.RerunFirst = b.Of, b.First
	r.Only, r.LeftOut, r.Outputs, r.GivenBy = b.Only, b.LeftOut, b.Outputs, b.GivenBy
	r.KeptWith, r.KeptAs = w.KeptBy(above), b.Path
	r.Cache = Cache{} // its outcome may be that of a part
	for i := range w.Beneath {
		if strings.HasPrefix(w.Beneath[i].Path, b.Path+"/") {
			r.Beneath = append(r.Beneath, w.Beneath[i])
		}
	}
}

// KeptBy is the execution with which it is kept what the tasks of this one reuse, whose own id is given.
func (r *Request) KeptBy(own ID) ID {
	if r.KeptWith.IsZero() {
		return own
	}
	return r.KeptWith
}

// KeptTask is the name under which it is kept what a task of this workflow reuses.
func (r *Request) KeptTask(task string) string {
	if r.KeptAs == "" {
		return task
	}
	return r.KeptAs + "/" + task
}
