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

// taskName makes a recorded name one that workflows allow.
func taskName(id string) string { return strings.ToLower(strings.ReplaceAll(id, " ", "_")) }

func replay(t *testing.T, s *serverProcess, dag *recordedDAG) {
	var doc strings.Builder
	fmt.Fprintf(&doc, "name: %s\ntasks:\n", strings.ToLower(dag.Name))
	paths := map[string]time.Duration{}
	var critical time.Duration
	for _, task := range dag.Tasks {
		nap := time.Duration(task.Seconds / 100 * float64(time.Second))
		fmt.Fprintf(&doc, "  %s: {action: sleep, with: {for: %g}, needs: [", taskName(task.ID), nap.Seconds())
		longest := time.Duration(0)
		for i, n := range task.Needs {
			if i > 0 {
				doc.WriteString(", ")
			}
			doc.WriteString(taskName(n))
			longest = max(longest, paths[n])
		}
		doc.WriteString("]}\n")
		paths[task.ID] = longest + nap
		critical = max(critical, longest+nap)
	}
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
