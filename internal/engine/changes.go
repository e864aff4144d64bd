package engine

import (
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// changes is the decisions of a transaction that are not written yet.
type changes struct {
	drafts           []*flow.Draft // in the order of the decisions; an execution that was decided about twice is here twice
	idempotency      []store.IdempotencyKey
	workflows        store.WorkflowRows
	uploadReferences map[flow.ID][]store.UploadReference // by the new execution that references uploads
	rows             *store.Delta                        // all else, which does not depend on deferred executions; nil: nothing

	taken map[flow.ID]bool // scratch of take
}

// take removes the rows that can be written now and returns them; anyRows is false if there are none. draft returns the draft of
// an execution. These stay for a later call:
//
//   - executions that are deferred
//   - marks, changes and reuses whose workflow is deferred
//   - all idempotency keys while any execution is deferred: they may name it
func (c *changes) take(deferred func(*flow.Draft) bool, draft func(flow.ID) *flow.Draft) (d store.Delta, anyRows bool) {
	if c.rows == nil && len(c.drafts)+len(c.idempotency)+len(c.workflows.Marks)+len(c.workflows.Changes) == 0 {
		return d, false
	}
	if c.rows != nil {
		d, anyRows, c.rows = *c.rows, true, nil
	}
	if c.taken == nil {
		c.taken = make(map[flow.ID]bool, len(c.drafts))
	}
	d.Drafts = make([]*flow.Draft, 0, len(c.drafts))
	var later []*flow.Draft
	for _, x := range c.drafts {
		switch {
		case deferred(x):
			later = append(later, x)
		case x.Changed() && !c.taken[x.ID]:
			c.taken[x.ID] = true
			d.Drafts = append(d.Drafts, x)
		}
	}
	clear(c.taken)
	w := c.workflows
	c.workflows = store.WorkflowRows{}
	if len(later) == 0 {
		c.drafts = c.drafts[:0]
		d.Keys, c.idempotency = c.idempotency, nil
	} else {
		c.drafts = later
		w.Marks, c.workflows.Marks = partition(w.Marks, func(m store.Mark) bool { return deferred(draft(m.Workflow)) })
		w.Changes, c.workflows.Changes = partition(w.Changes, func(p store.WorkflowChange) bool { return deferred(draft(p.ID)) })
		w.Reuses, c.workflows.Reuses = partition(w.Reuses, func(r store.Reuse) bool { return deferred(draft(r.Workflow)) })
	}
	d.UploadReferences = c.uploadReferencesOf(d.Drafts)
	// A rerun may end as it is created because its key is full: no later step would delete its reuses.
	w.Reuses = slices.DeleteFunc(w.Reuses, func(r store.Reuse) bool { return draft(r.Workflow).Stage.Terminal() })
	d.Workflows = w
	return d, anyRows || len(d.Drafts)+len(d.Keys)+len(w.Marks)+len(w.Changes)+len(w.Reuses) > 0
}

// add returns the delta that the next flush writes, to be extended.
func (c *changes) add() *store.Delta {
	if c.rows == nil {
		c.rows = &store.Delta{}
	}
	return c.rows
}

// partition splits the elements into those that go and those that stay.
func partition[T any](all []T, stays func(T) bool) (goes, stay []T) {
	if !slices.ContainsFunc(all, stays) {
		return all, nil
	}
	for _, x := range all {
		if stays(x) {
			stay = append(stay, x)
		} else {
			goes = append(goes, x)
		}
	}
	return goes, stay
}

// referenceUpload records that a new execution references an upload.
func (c *changes) referenceUpload(h store.UploadReference) {
	if c.uploadReferences == nil {
		c.uploadReferences = map[flow.ID][]store.UploadReference{}
	}
	c.uploadReferences[h.Execution] = append(c.uploadReferences[h.Execution], h)
}

// uploadReferencesOf removes and returns the upload references of the drafts.
func (c *changes) uploadReferencesOf(drafts []*flow.Draft) (all []store.UploadReference) {
	if len(c.uploadReferences) == 0 {
		return nil
	}
	for _, d := range drafts {
		all = append(all, c.uploadReferences[d.ID]...)
		delete(c.uploadReferences, d.ID)
	}
	return all
}
