package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/programtest"
)

const cleaningWorkflow = `
name: deploy
input: {type: object, properties: {dir: {type: string}}}
cleanup_timeout: 10m
tasks:
  roll-out: {action: sleep, with: {for: 1h}}
  unlock:
    needs: [roll-out]
    if: cancelled()
    action: code
    env: {DIR: "${{ input.dir }}"}
    with:
      language: bash
      limits: {wall: 5m}
      source: |
        echo "$PAWL_ATTEMPT" >> "$DIR/began"
        while [ ! -e "$DIR/go" ]; do sleep 0.05; done
        echo "$PAWL_ATTEMPT" >> "$DIR/unlocked"
`

// A server that dies in the middle of a clean-up continues it after its restart: the interrupted task runs again, once, and the workflow
// ends as ordered.
func TestKilledInACleanup(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	s := serve(t, state, "--runtime", "process")
	if _, err := s.client.Define(t.Context(), []byte(cleaningWorkflow), "deploy.yaml"); err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]string{"dir": dir})
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.client.Submit(t.Context(), api.Submission{Action: "deploy", Input: input})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Cancel(t.Context(), x.ID, "not today", 0); err != nil {
		t.Fatal(err)
	}
	appears(t, filepath.Join(dir, "began"))
	for range 2 {
		why, err := s.client.Why(t.Context(), x.ID)
		if err != nil {
			t.Fatal(err)
		}
		if said := why.Summary + " " + strings.Join(why.Facts, " "); !strings.Contains(said, "unlock") || !strings.Contains(said, "it is cleaning up until ") {
			t.Errorf("why: %q", said)
		}
		path, err := programtest.Pawl()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), path, "get", "executions", "--server", s.address).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "cleaning up until ") {
			t.Errorf("pawl get: %v\n%s", err, out)
		}
		s.Kill()
		s = serve(t, state, "--runtime", "process")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if end := s.wait(t, x.ID); end.Status != api.Cancelled || end.Error == nil || end.Error.Message != "not today" {
		t.Errorf("%+v", end)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "unlocked")); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the clean-up was over %q times: %v", text, err)
	}
	begun := 0
	for _, e := range s.history(t, x.ID) {
		if e.Type == "advanced" && strings.Contains(string(e.Data), `"cleanup"`) {
			begun++
		}
	}
	tasks, err := s.client.Tasks(t.Context(), x.ID, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks.Tasks {
		if want := map[string]api.Status{"roll-out": api.Cancelled, "unlock": api.Completed}[task.Name]; task.Status != want || len(task.Executions) != 1 {
			t.Errorf("%s: %s in %d executions", task.Name, task.Status, len(task.Executions))
		}
	}
	if begun == 0 {
		t.Error("the history says nothing of the clean-up")
	}
}

// appears waits for a file.
func appears(t *testing.T, path string) {
	t.Helper()
	late, tick := time.After(3*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Stat(path)
		if err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s never appeared", path)
		}
	}
}
