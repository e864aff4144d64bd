package definition

import "fmt"

// Work counts what the evaluation of expressions has taken, in operations: CEL's cost of an expression, and a hundredth of the bytes that a
// path was looked up in. 10 million take about a second of a processor. It is counted and never timed, so that the same values always give
// the same result. The zero value counts without a bound.
type Work struct {
	Done int
	most int // what Done may reach; 0: no bound
	says int // the bound that the error names
}

const (
	// maxTemplateWork bounds the evaluation of one value of a document, such as the `with` of a task, however many expressions are in it: each
	// alone may take a tenth of a second, and 4 MB of document hold 70,000 of them.
	maxTemplateWork = 5_000_000
	// maxSharedWork bounds it where nothing counts the work, as for the inputs of rules and schedules: the loops that
	// evaluate these are shared by all users, who wait for a fifth of a second then.
	maxSharedWork = 2_000_000
	// bytesPerOperation is how many bytes of JSON are skipped in the time of an operation.
	bytesPerOperation = 100
)

// add counts operations. It fails beyond the bound.
func (w *Work) add(n int) error {
	if w == nil {
		return nil
	}
	w.Done += n
	if w.most > 0 && w.Done > w.most {
		return fmt.Errorf("the expressions of this value take more than %d operations together: compute less, or do the work in a task, in code", w.says)
	}
	return nil
}

// bound begins the bound of one template. What it returns is given to unbound at the end.
func (v *Vars) bound() (before Work, counted bool) {
	if v.Work == nil {
		v.Work = &Work{most: maxSharedWork, says: maxSharedWork}
		return Work{}, false
	}
	before = *v.Work
	v.Work.most, v.Work.says = v.Work.Done+maxTemplateWork, maxTemplateWork
	return before, true
}

func (v *Vars) unbound(before Work, counted bool) {
	if !counted {
		v.Work = nil
		return
	}
	v.Work.most, v.Work.says = before.most, before.says
}
