package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// recording is what the store knows of a workflow's execution that is planned again.
type recording struct {
	items map[orchestration.Item]*orchestration.Past
	sizes map[string]int64 // of the outputs, by task
	marks map[string]orchestration.Mark
}

// recording reads how the items of a workflow's attempt ended.
func (e *Engine) recording(ctx context.Context, workflowAttempt store.WorkflowAttempt) (*recording, error) {
	rec := &recording{items: map[orchestration.Item]*orchestration.Past{}, sizes: map[string]int64{}, marks: map[string]orchestration.Mark{}}
	marks, err := e.opts.Store.Marks(ctx, workflowAttempt)
	if err != nil {
		return nil, err
	}
	for _, m := range marks {
		rec.marks[m.Task] = orchestration.MarkNamed(m.State)
	}
	for page := range e.recordedPages(ctx, workflowAttempt) {
		if page.err != nil {
			return nil, page.err
		}
		for _, x := range page.all {
			rec.add(x)
		}
	}
	return rec, nil
}

// recordedPage is one page of a workflow attempt's record, or its error.
type recordedPage struct {
	all []*flow.Execution
	err error
}

// recordedPages reads the record of an attempt page by page. It reads a page while the caller works on the one before, because reading and
// hashing a page take about as long. The last page is empty or has an error; the caller must receive all of them.
func (e *Engine) recordedPages(ctx context.Context, workflowAttempt store.WorkflowAttempt) <-chan recordedPage {
	pages := make(chan recordedPage)
	read := func(task string, index int) (all []*flow.Execution, err error) {
		defer fault.Recovered(&err)
		return e.opts.Store.Recorded(ctx, workflowAttempt, task, index, recordedAtOnce)
	}
	go func() {
		defer close(pages)
		for task, index, more := "", -1, true; more; {
			all, err := read(task, index)
			if more = err == nil && len(all) > 0; more {
				task, index = all[len(all)-1].Task, all[len(all)-1].Index
			}
			pages <- recordedPage{all, err}
		}
	}()
	return pages
}

func (rec *recording) add(x *flow.Execution) {
	p := &orchestration.Past{Execution: x.ID, Of: x.ID, Stage: x.Stage, Work: workOf(&x.Request), Fleeting: namesFiles(x.Outcome.Output), Partial: len(x.AsRerun().Only) > 0}
	if !x.ReusedOf.IsZero() {
		p.Of = x.ReusedOf
	}
	rec.items[orchestration.Item{Task: x.Task, Index: x.Index}] = p
	rec.sizes[x.Task] += int64(len(x.Outcome.Output))
}

// past is how an item ended; false: there was no such item.
func (rec *recording) past(task string, index int) (orchestration.Past, bool) {
	p := rec.items[orchestration.Item{Task: task, Index: index}]
	if p == nil {
		return orchestration.Past{}, false
	}
	return *p, true
}

// namesFiles reports whether an output names blobs that are removed with the execution that wrote them. Uploads are kept by the executions
// that name them.
func namesFiles(output json.RawMessage) bool {
	return slices.ContainsFunc(blob.References(output), func(r blob.Reference) bool {
		_, upload := blob.ParseSum(r.Name)
		return !upload
	})
}

// recordedOutput reads the outputs of the first n items of a task, within the same bound as a step.
func (e *Engine) recordedOutput(ctx context.Context, workflowAttempt store.WorkflowAttempt, rec *recording, t *definition.Task,
	n int) (out orchestration.Output, err error) {
	if rec.sizes[t.Name] > outputsLimit {
		out.TooLarge = fmt.Errorf("the outputs of task %q have more than %d MB together: what looks at them is not planned, and runs", t.Name, outputsLimit>>20)
		return out, nil
	}
	first := -1
	if t.Foreach != nil {
		out.Items = make([]json.RawMessage, n)
	} else if t.Repeat != nil {
		first = n - 2 // the output of its latest round
	}
	for index := first; index < n-1; {
		all, err := e.opts.Store.Recorded(ctx, workflowAttempt, t.Name, index, min(recordedAtOnce, n-1-index))
		if err != nil {
			return out, err
		}
		for _, x := range all {
			if x.Task != t.Name {
				return out, nil
			}
			if index = x.Index; t.Foreach == nil {
				out.Single = x.Outcome.Output
			} else if index < n {
				out.Items[index] = x.Outcome.Output
			}
		}
		if len(all) == 0 {
			return out, nil
		}
	}
	return out, nil
}

// checkItems refuses items that do not exist; path is the field that names them, and above is the path of the workflow.
func checkItems(path, above string, w *definition.Workflow, rec *recording, items []orchestration.Item) error {
	for _, i := range items {
		t := w.Task(i.Task)
		text, where, prefix := above+i.Text(), "the workflow", ""
		if above != "" {
			where, prefix = strings.TrimSuffix(above, "/"), text+": "
		}
		switch {
		case t == nil:
			var names []string
			for _, t := range w.Tasks {
				names = append(names, t.Name)
			}
			fix := cmp.Or(problem.Nearest(i.Task, names), "its tasks are "+strings.Join(names[:min(len(names), catalog.NamesShown)], ", "))
			return fault.New(path, text, fmt.Sprintf("%s has no task %q", where, i.Task), fix)
		case i.Index != orchestration.AllItems && t.Repeat != nil:
			return fault.New(path, text, prefix+"the task has a repeat, and each of its rounds follows from the one before it", "name the task: "+above+i.Task)
		case i.Index != orchestration.AllItems && t.Foreach == nil:
			return fault.New(path, text, prefix+"the task has no foreach, so it has no items", "name the task: "+above+i.Task)
		}
		if _, ok := rec.past(i.Task, i.Index); !ok && i.Index != orchestration.AllItems {
			return fault.New(path, text, prefix+"the original has no such item", fmt.Sprintf("see its tasks: pawl describe; items that did not start run anyway (%s)", i.Task))
		}
	}
	return nil
}

// parseItem reads the text of Item.Text; path is its field.
func parseItem(path, text string) (orchestration.Item, error) {
	name, rest, has := strings.Cut(text, "[")
	i := orchestration.Item{Task: name, Index: orchestration.AllItems}
	if !has {
		return i, nil
	}
	if _, err := fmt.Sscanf(rest, "%d]", &i.Index); err != nil || i.Index < 0 || i.Text() != text {
		return i, fault.New(path, text, "an item is written as task[index], from 0 on", name+"[0]")
	}
	return i, nil
}
