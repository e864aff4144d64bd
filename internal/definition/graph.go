package definition

import (
	"math/bits"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/pawl-run/pawl/internal/problem"
)

const (
	listKind = types.ListKind
	mapKind  = types.MapKind
	boolKind = types.BoolKind
	intKind  = types.IntKind
)

// dynamic reports whether the type of an expression is only known at run time.
func dynamic(t *cel.Type) bool {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.OpaqueKind, types.TypeParamKind:
		return true
	}
	return false
}

// graph orders the tasks by Kahn's algorithm, and reports why the graph cannot start, end, or run every task.
func (b *builder) graph(w *Workflow, v *value, needs [][]need) {
	edges := 0
	for _, t := range w.Tasks {
		edges += len(t.Needs)
		for _, i := range t.Needs {
			w.Tasks[i].Successors = append(w.Tasks[i].Successors, t.Index)
		}
	}
	if edges > maxNeeds {
		b.fail(v, "tasks", "put a task between the groups", "the tasks need each other %d times; at most %d are allowed", edges, maxNeeds)
		return
	}
	waiting := make([]int, len(w.Tasks))
	w.Order = make([]int, 0, len(w.Tasks))
	for _, t := range w.Tasks {
		waiting[t.Index] = len(t.Needs)
		if len(t.Needs) == 0 {
			w.Order = append(w.Order, t.Index)
		}
	}
	entries := len(w.Order)
	for next := 0; next < len(w.Order); next++ {
		for _, s := range w.Tasks[w.Order[next]].Successors {
			if waiting[s]--; waiting[s] == 0 {
				w.Order = append(w.Order, s)
			}
		}
	}
	if len(w.Order) < len(w.Tasks) {
		b.stuck(w, v, needs, waiting, entries)
	}
	if !b.trusted {
		b.references(w, len(w.Order) == len(w.Tasks))
	}
}

// stuck reports the cycles, and the tasks after them that cannot be reached.
func (b *builder) stuck(w *Workflow, v *value, needs [][]need, waiting []int, entries int) {
	if entries == 0 {
		b.fail(v, "tasks", "remove a need from the task that is to start", "the workflow has no entry: every task needs another")
	}
	if !slices.ContainsFunc(w.Tasks, func(t *Task) bool { return len(t.Successors) == 0 }) {
		b.fail(v, "tasks", "remove the need that leads back", "the workflow has no exit: every task is needed by another")
	}
	in := cycles(w, waiting)
	behind := 0
	for _, c := range in {
		for _, i := range c {
			waiting[i] = 0 // on a cycle, and named in that error
		}
		var names []string
		for _, i := range c {
			names = append(names, w.Tasks[i].Name)
		}
		if len(names) > 20 {
			names = append(names[:10:10], append([]string{"…"}, names[len(names)-9:]...)...)
		}
		first, last := w.Tasks[c[0]], c[len(c)-1]
		at := v
		for _, n := range needs[first.Index] {
			if n.task == last {
				at = n.at
			}
		}
		b.fail(at, problem.Join(problem.Join("tasks", first.Name), "needs"), "remove one of these needs", "the tasks wait for each other: %s → %s", strings.Join(names, " → "), names[0])
	}
	for _, t := range w.Tasks {
		if waiting[t.Index] > 0 {
			if behind++; behind <= 50 {
				b.failAt(t.Position, problem.Join("tasks", t.Name), "break the cycle", "the task can never be reached: it comes after tasks that wait for each other")
			}
		}
	}
}

// cycles returns cycles among the remaining tasks, at least one for each connected group of them but at most 50. Each is in running order,
// beginning with its first task in the document.
func cycles(w *Workflow, waiting []int) [][]int {
	const (
		unseen = iota
		open
		done
	)
	state := make([]uint8, len(w.Tasks))
	var found [][]int
	type frame struct{ task, next int }
	for start := range w.Tasks {
		if waiting[start] == 0 || state[start] != unseen {
			continue
		}
		stack := []frame{{start, 0}}
		state[start] = open
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			succ := w.Tasks[top.task].Successors
			if top.next == len(succ) {
				state[top.task] = done
				stack = stack[:len(stack)-1]
				continue
			}
			s := succ[top.next]
			top.next++
			switch {
			case waiting[s] == 0 || state[s] == done:
			case state[s] == open:
				var c []int
				for i := len(stack) - 1; ; i-- {
					c = append(c, stack[i].task)
					if stack[i].task == s {
						break
					}
				}
				slices.Reverse(c)
				if len(found) < 50 {
					found = append(found, rotate(c))
				}
			default:
				state[s] = open
				stack = append(stack, frame{s, 0})
			}
		}
	}
	return found
}

// rotate makes a cycle begin with its first task in the document.
func rotate(c []int) []int {
	at := slices.Index(c, slices.Min(c))
	return append(slices.Clone(c[at:]), c[:at]...)
}

// references checks that every task in an expression comes before the expression's own task; if the graph is not ordered, only that it
// exists.
func (b *builder) references(w *Workflow, ordered bool) {
	var before []bitset
	for _, m := range b.mentions {
		for _, r := range m.expr.facts.refs {
			i, known := w.index[r.Task]
			if !known {
				b.failAt(m.place(r), m.expr.field, b.offerTask(r.Task), "there is no task %q", problem.Clip(r.Task, 60))
				continue
			}
			if m.task == noTask {
				continue
			}
			self := w.Tasks[m.task]
			if i == m.task {
				b.failAt(m.place(r), m.expr.field, "look at the tasks that it needs", "the task looks at its own result")
				continue
			}
			if !ordered || slices.Contains(self.Needs, i) {
				continue
			}
			if before == nil {
				before = ancestors(w)
			}
			if !before[m.task].has(i) {
				b.failAt(m.place(r), m.expr.field, "add "+r.Task+" to needs of "+self.Name, "the task %q does not come before %q", problem.Clip(r.Task, 60), self.Name)
			}
		}
		if p := m.expr.path; p != nil && p.root == "tasks" && !slices.Contains(taskFields, p.steps[1].name) {
			i := badField(p.steps[0].name, p.steps[1].name)
			b.failAt(m.at(1, 0), m.expr.field, i.fix, "%s", i.message)
		}
	}
}

// place returns the position of the task's name within its expression.
func (m mention) place(r TaskRef) Position {
	line, column := 1, 0
	if i := strings.Index(m.expr.text, "tasks."+r.Task); i >= 0 {
		line += strings.Count(m.expr.text[:i], "\n")
		column = len([]rune(m.expr.text[strings.LastIndexByte(m.expr.text[:i], '\n')+1:i])) - indent(m.expr.text, line)
	}
	return m.at(line, column)
}

// bitset is a set of task indexes.
type bitset []uint64

func (s bitset) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s bitset) add(i int)      { s[i/64] |= 1 << (i % 64) }

// ancestors returns, for each task, the tasks that come before it.
func ancestors(w *Workflow) []bitset {
	words := (len(w.Tasks) + bits.UintSize - 1) / bits.UintSize
	store := make(bitset, words*len(w.Tasks))
	sets := make([]bitset, len(w.Tasks))
	for i := range sets {
		sets[i] = store[i*words : (i+1)*words]
	}
	for _, i := range w.Order {
		for _, n := range w.Tasks[i].Needs {
			for k, word := range sets[n] {
				sets[i][k] |= word
			}
			sets[i].add(n)
		}
	}
	return sets
}
