package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// wide is a workflow of single tasks and one foreach task.
func wide(singles, items int) string {
	var b strings.Builder
	b.WriteString("name: wide\ntasks:\n")
	for i := range singles {
		fmt.Fprintf(&b, "  t%d: {action: sleep, with: {for: 1ms}}\n", i)
	}
	if items > 0 {
		b.WriteString("  each: {foreach: [0")
		for i := 1; i < items; i++ {
			fmt.Fprintf(&b, ", %d", i)
		}
		b.WriteString("], action: sleep, with: {for: 1ms}}\n")
	}
	return b.String()
}

// The state of a workflow's tasks is exact, however many executions they have.
func TestTasksOfAWideWorkflow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ singles, items int }{{1004, 0}, {2122, 0}, {22, 2100}} {
		t.Run(fmt.Sprintf("%d and %d", tc.singles, tc.items), func(t *testing.T) {
			t.Parallel()
			h := start(t, Options{})
			if _, err := h.client.Define(t.Context(), []byte(wide(tc.singles, tc.items)), "wide.yaml"); err != nil {
				t.Fatal(err)
			}
			x, err := h.client.Submit(t.Context(), api.Submission{Action: "wide"})
			if err != nil {
				t.Fatal(err)
			}
			if x, err = h.client.Wait(t.Context(), x.ID); err != nil || x.Status != api.Completed {
				t.Fatalf("%+v, %v", x, err)
			}
			all := h.executionsOf(t, x.ID)
			if len(all) != tc.singles+tc.items {
				t.Fatalf("%d executions, not %d", len(all), tc.singles+tc.items)
			}
			const items = 1000
			tasks, err := h.client.Tasks(t.Context(), x.ID, items)
			if err != nil {
				t.Fatal(err)
			}
			listed := 0
			for _, task := range tasks.Tasks {
				listed += len(task.Executions)
				checkTask(t, &task, all, min(items, max(1, tc.items)))
			}
			if want := tc.singles + min(items, tc.items); listed != want {
				t.Errorf("%d executions are listed, not %d", listed, want)
			}
		})
	}
}

// executionsOf returns the executions of a workflow's tasks, by id.
func (h *house) executionsOf(t *testing.T, workflow string) map[string]*flow.Execution {
	t.Helper()
	id, err := flow.ParseID(flow.ExecutionPrefix, workflow)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*flow.Execution{}
	for f := (store.Filter{Workflow: id, Limit: 1000}); ; {
		page, err := store.List(t.Context(), h.store, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		for _, x := range page {
			all[x.ID.String()] = x
			f.Before = x.ID
		}
	}
}

func checkTask(t *testing.T, task *api.Task, all map[string]*flow.Execution, listed int) {
	t.Helper()
	var started, finished time.Time
	n := 0
	for _, x := range all {
		if x.Task != task.Name {
			continue
		}
		n++
		if started.IsZero() || x.StartedAt.Before(started) {
			started = x.StartedAt
		}
		if x.FinishedAt.After(finished) {
			finished = x.FinishedAt
		}
	}
	if task.Status != api.Completed || task.Created != n || task.Ended != n || !task.StartedAt.Equal(started) || !task.FinishedAt.Equal(finished) || started.IsZero() || finished.IsZero() {
		t.Errorf("%s: %s, %d of %d, from %s to %s; want %d from %s to %s", task.Name, task.Status, task.Ended, task.Created, task.StartedAt, task.FinishedAt, n, started, finished)
	}
	if want := min(n, listed); len(task.Executions) != want || task.More != (n > want) {
		t.Errorf("%s lists %d of %d, more: %v", task.Name, len(task.Executions), n, task.More)
	}
	for _, e := range task.Executions {
		x := all[e.ID]
		if x == nil || e.Index != x.Index || e.Status != api.Completed || e.Attempt != 1 || e.Kind != string(x.Kind) || !e.CreatedAt.Equal(x.CreatedAt) ||
			!e.StartedAt.Equal(x.StartedAt) || !e.FinishedAt.Equal(x.FinishedAt) || e.FinishedAt.IsZero() || !e.WakeAt.Equal(x.WakeAt) {
			t.Errorf("%s lists %+v of %+v", task.Name, e, x)
		}
	}
}

// If there are many executions, the unfinished ones are listed, and then the latest.
func TestListedExecutionsOfATask(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rows, most int
		open       []int
		want       string
	}{
		{5, 10, nil, "0 1 2 3 4"},
		{9, 3, nil, "6 7 8"},
		{9, 3, []int{1}, "1 7 8"},
		{9, 3, []int{0, 1, 2, 3}, "1 2 3"},
		{9, 1, []int{8}, "8"},
		{1000, 4, []int{17, 400}, "17 400 998 999"},
	} {
		s := taskSum{most: tc.most, counts: map[flow.Stage]int{}, overridden: func(int) bool { return false }}
		for i := range tc.rows {
			row := store.Child{Index: i, Stage: flow.Completed}
			for _, o := range tc.open {
				if o == i {
					row.Stage = flow.Running
				}
			}
			s.add(row)
		}
		var got []string
		for _, r := range s.listed() {
			got = append(got, fmt.Sprint(r.Index))
		}
		if strings.Join(got, " ") != tc.want || s.created != tc.rows || s.ended != tc.rows-len(tc.open) || cap(s.finished) > 8*tc.most+8 {
			t.Errorf("%d of %d with %v open: %v, created %d, ended %d, kept %d", tc.most, tc.rows, tc.open, got, s.created, s.ended, cap(s.finished))
		}
	}
}

// An answer lists a limited number of executions, however many tasks a workflow has and however many items each.
func TestShareOfATask(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ tasks, wide, items, want int }{
		{10_000, 0, 100, 100}, {1, 1, 1000, 1000}, {100, 100, 100, 100}, {100, 100, 1000, 200}, {10_000, 10_000, 1000, 2}, {10_000, 1, 1000, 1000},
	} {
		plan := &definition.Workflow{Tasks: make([]*definition.Task, tc.tasks)}
		for i := range plan.Tasks {
			plan.Tasks[i] = &definition.Task{}
			if i < tc.wide {
				plan.Tasks[i].Foreach = &definition.Template{}
			}
		}
		got := share(plan, tc.items)
		if got != tc.want || tc.tasks-tc.wide+tc.wide*got > mostTaskRows {
			t.Errorf("%d tasks, %d of them foreach, %d asked for: %d", tc.tasks, tc.wide, tc.items, got)
		}
	}
}

// A task that runs in rounds is running until it is decided that no further round follows, and shows the largest number of rounds.
func TestTasksInRounds(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, row := range []struct {
		repeat string
		wait   bool // checked while the second round waits for its time
		want   api.Status
		rounds int
		code   string
	}{
		{"until: round == 3, max: 5", false, api.Completed, 3, ""},
		{"until: round == 9, max: 4", false, api.Failed, 4, flow.CodeNotReached},
		{"until: output.x == 3, max: 4", false, api.Failed, 1, flow.CodeExpressionError},
		{"until: round == 2, max: 3, delay: 1h", true, api.Running, 2, ""},
	} {
		if _, err := h.client.Define(t.Context(), []byte("name: w\ntasks:\n  poll: {action: sleep, with: {for: 1ms}, repeat: {"+row.repeat+"}}\n"), "w.yaml"); err != nil {
			t.Fatal(err)
		}
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "w"})
		if err == nil && !row.wait {
			_, err = h.client.Wait(t.Context(), x.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		var task api.Task
		for {
			tasks, err := h.client.Tasks(t.Context(), x.ID, 100)
			if err != nil {
				t.Fatal(err)
			}
			if task = tasks.Tasks[0]; !row.wait || task.Created == row.rounds {
				break
			}
		}
		code := ""
		if task.Error != nil {
			code = task.Error.Code
		}
		if task.Status != row.want || task.Created != row.rounds || code != row.code || !strings.Contains(row.repeat, fmt.Sprintf("max: %d", task.Repeat)) || len(task.Executions) != row.rounds {
			t.Errorf("%s: %+v", row.repeat, task)
		}
	}
}
