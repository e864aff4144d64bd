package definition

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/definition/compute"
)

// Work counts the operations of evaluations: CEL's cost of an expression, a hundredth of the bytes searched for a path, and the steps of
// checks against schemas. 10 million take about a second of a processor. It does not measure time, so that the same values always give the
// same result. The zero value counts, and limits each template.
type Work struct {
	Done  int
	most  int  // limit of Done; 0: none
	says  int  // limit that the error names
	whole bool // the limit applies to everything that is counted, not to one template
}

// Together starts a limit of maxTemplateWork for all templates that are evaluated until the next call: those of a task, or of an item of
// its foreach. With a limit for each, env, if, foreach, with and the keys of one task could take 30 million operations in one transaction.
func (w *Work) Together() { w.most, w.says, w.whole = w.Done+maxTemplateWork, maxTemplateWork, true }

// Left returns how many operations may still be counted; 0: none, or there is no limit.
func (w *Work) Left() int { return max(0, w.most-w.Done) }

const (
	// maxTemplateWork limits the evaluation of one value of a document, such as the `with` of a task, with all its expressions: each alone may
	// take a tenth of a second, and a document of 4 MB can have 70,000 of them.
	maxTemplateWork = 5_000_000
	// SharedWork limits what a loop for all users computes for one document at a time, such as the condition, the input and the keys of a rule
	// for one signal: other users then wait for a fifth of a second.
	SharedWork = 2_000_000
	// QuickWork limits the first evaluation of a document in such a loop. A document that needs more is evaluated after all others.
	QuickWork = compute.QuickCost
	// bytesPerOperation is how many bytes of JSON are skipped in the time of an operation.
	bytesPerOperation = 100
	// operationsPerStep is how many operations take as long as a step of a check against a schema.
	operationsPerStep = 10
)

// WorkWithin returns a Work that ends evaluation after a number of operations.
func WorkWithin(most int) *Work { return &Work{most: most, says: most, whole: true} }

// Exceeded reports whether more was counted than is allowed: the last evaluation failed for that reason.
func (w *Work) Exceeded() bool { return w.most > 0 && w.Done > w.most }

// quick reports whether each expression is limited to QuickWork.
func (w *Work) quick() bool { return w != nil && w.whole && w.most <= QuickWork }

// add counts operations. It returns an error above the limit.
func (w *Work) add(n int) error {
	if w == nil {
		return nil
	}
	w.Done += n
	if w.Exceeded() {
		return fmt.Errorf("the expressions of this value, and of what is evaluated with it, take more than %d operations together: compute less, or do the work in a task, in code", w.says)
	}
	return nil
}

// spend counts operations that have their own limit, and raises the limit of w by them. Only in a quick evaluation it can fail.
func (w *Work) spend(n int) error {
	if w == nil || w.quick() {
		return w.add(n)
	}
	if w.Done += n; w.most > 0 {
		w.most += n
	}
	return nil
}

// bound starts the limit of one template. Its results are passed to unbound at the end.
func (v *Vars) bound() (before Work, counted bool) {
	if v.Work == nil {
		v.Work = WorkWithin(SharedWork)
		return Work{}, false
	}
	before = *v.Work
	if !v.Work.whole {
		v.Work.most, v.Work.says = v.Work.Done+maxTemplateWork, maxTemplateWork
	}
	return before, true
}

func (v *Vars) unbound(before Work, counted bool) {
	if !counted {
		v.Work = nil
		return
	}
	if !v.Work.whole {
		v.Work.most, v.Work.says = before.most, before.says
	}
}
