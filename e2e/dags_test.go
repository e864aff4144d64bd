package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

type recordedDAG struct {
	Name  string `json:"name"`
	Tasks []struct {
		ID      string   `json:"id"`
		Needs   []string `json:"needs"`
		Seconds float64  `json:"seconds"`
	} `json:"tasks"`
}

// The recorded scientific workflows run in the order that their edges demand, close to their critical path. Their tasks
// sleep for a hundredth of the recorded time.
func TestRecordedDAGs(t *testing.T) {
	files, err := filepath.Glob("../../shared/data/dags/*.json")
	if err != nil || len(files) == 0 {
		t.Skip("the recorded workflows are not here (../shared/data/dags)")
	}
	s := serve(t, t.TempDir(), "--slots", "4")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dag recordedDAG
		if err := json.Unmarshal(data, &dag); err != nil {
			t.Fatal(err)
		}
		t.Run(dag.Name, func(t *testing.T) { replay(t, s, &dag) })
	}
}

// taskName turns a recorded name into one that workflows allow.
func taskName(id string) string { return strings.ToLower(strings.ReplaceAll(id, " ", "_")) }

// criticalPath returns the longest sum of naps along any path.
func (d *recordedDAG) criticalPath() time.Duration {
	nap, needs := map[string]time.Duration{}, map[string][]string{}
	for _, t := range d.Tasks {
		nap[t.ID], needs[t.ID] = time.Duration(t.Seconds/100*float64(time.Second)), t.Needs
	}
	ends := map[string]time.Duration{}
	var end func(id string) time.Duration
	end = func(id string) time.Duration {
		if _, known := ends[id]; !known {
			longest := time.Duration(0)
			for _, n := range needs[id] {
				longest = max(longest, end(n))
			}
			ends[id] = longest + nap[id]
		}
		return ends[id]
	}
	longest := time.Duration(0)
	for _, t := range d.Tasks {
		longest = max(longest, end(t.ID))
	}
	return longest
}

func replay(t *testing.T, s *serverProcess, dag *recordedDAG) {
	var doc strings.Builder
	fmt.Fprintf(&doc, "name: %s\ntasks:\n", strings.ToLower(dag.Name))
	for _, task := range dag.Tasks {
		needs := make([]string, len(task.Needs))
		for i, n := range task.Needs {
			needs[i] = taskName(n)
		}
		fmt.Fprintf(&doc, "  %s: {action: sleep, with: {for: %g}, needs: [%s]}\n", taskName(task.ID), task.Seconds/100, strings.Join(needs, ", "))
	}
	critical := dag.criticalPath()
	if _, err := s.client.Define(t.Context(), []byte(doc.String()), dag.Name+".yaml"); err != nil {
		t.Fatalf("%v\n%s", err, doc.String())
	}
	x, err := s.client.Submit(t.Context(), api.Submission{Action: strings.ToLower(dag.Name)})
	if err != nil {
		t.Fatal(err)
	}
	x = s.wait(t, x.ID)
	if x.Status != api.Completed {
		t.Fatalf("%s: %v", x.Status, x.Error)
	}
	took := x.FinishedAt.Sub(x.CreatedAt)
	tasks, err := s.client.Tasks(t.Context(), x.ID, 10)
	if err != nil {
		t.Fatal(err)
	}
	began, ended := map[string]time.Time{}, map[string]time.Time{}
	for _, task := range tasks.Tasks {
		if len(task.Executions) != 1 {
			t.Fatalf("task %s has %d executions", task.Name, len(task.Executions))
		}
		began[task.Name], ended[task.Name] = task.Executions[0].StartedAt, task.Executions[0].FinishedAt
	}
	edges := 0
	for _, task := range dag.Tasks {
		for _, n := range task.Needs {
			edges++
			if began[taskName(task.ID)].Before(ended[taskName(n)]) {
				t.Errorf("%s began at %s, before %s ended at %s", task.ID, began[taskName(task.ID)], n, ended[taskName(n)])
			}
		}
	}
	t.Logf("%s: %d tasks, %d edges, %s for a critical path of %s: %.2f ×", dag.Name, len(dag.Tasks), edges,
		took.Round(time.Millisecond), critical.Round(time.Millisecond), float64(took)/float64(critical))
}
