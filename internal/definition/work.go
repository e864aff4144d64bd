package definition

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/definition/compute"
)

// Work counts what the evaluation of expressions has taken, in operations: CEL's cost of an expression, a hundredth of the bytes that a
// path was looked up in, and the steps of checks against schemas. 10 million take about a second of a processor. It is counted and never
// timed, so that the same values always give the same result. The zero value counts, and bounds each template.
type Work struct {
	Done  int
	most  int  // what Done may reach; 0: no bound
	says  int  // the bound that the error names
	whole bool // the bound is of all that is counted, and not of one template
}

// Together begins a bound of maxTemplateWork for all templates that are evaluated until the next call: those of a task, or of an item of
// its foreach. With a bound for each, env, if, foreach, with and the keys of one task could take 30 million operations in one transaction.
func (w *Work) Together() { w.most, w.says, w.whole = w.Done+maxTemplateWork, maxTemplateWork, true }

// Left is how many operations may still be counted; 0: none, or there is no bound.
func (w *Work) Left() int { return max(0, w.most-w.Done) }

const (
	// maxTemplateWork bounds the evaluation of one value of a document, such as the `with` of a task, however many expressions are in it: each
	// alone may take a tenth of a second, and 4 MB of document hold 70,000 of them.
	maxTemplateWork = 5_000_000
	// SharedWork bounds what a loop that all users share computes for one document at a time, as for the condition, the input and the keys of
	// a rule on one signal: other users wait for a fifth of a second then.
	SharedWork = 2_000_000
	// QuickWork bounds the first look of such a loop at a document. One that takes more waits for its turn behind all others.
	QuickWork = compute.QuickCost
	// bytesPerOperation is how many bytes of JSON are skipped in the time of an operation.
	bytesPerOperation = 100
	// operationsPerStep is how many operations take as long as a step of a check against a schema.
	operationsPerStep = 10
)

// WorkWithin is a count that ends evaluation beyond a number of operations.
func WorkWithin(most int) *Work { return &Work{most: most, says: most, whole: true} }

// Exceeded reports whether more has been counted than is allowed: what was evaluated last has failed for that reason.
func (w *Work) Exceeded() bool { return w.most > 0 && w.Done > w.most }

// quick reports whether expressions are evaluated within QuickWork each.
func (w *Work) quick() bool { return w != nil && w.whole && w.most <= QuickWork }

// add counts operations. It fails beyond the bound.
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

// spend counts operations that have a bound of their own. Only a quick look fails for them.
func (w *Work) spend(n int) error {
	if w == nil || w.quick() {
		return w.add(n)
	}
	if w.Done += n; w.most > 0 {
		w.most += n
	}
	return nil
}

// bound begins the bound of one template. What it returns is given to unbound at the end.
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
