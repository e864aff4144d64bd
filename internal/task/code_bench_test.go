package task_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
)

// BenchmarkPython is one evaluation of the shortest program in a sandbox; BenchmarkBarePython the same without Pawl.
func BenchmarkPython(b *testing.B) {
	rt, err := sandbox.New(sandbox.Options{})
	if err != nil {
		b.Skip(err)
	}
	defer rt.Close()
	h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		t := &task.Task{Execution: flow.ID{1}, Attempt: 1, Payload: json.RawMessage(`{"language":"python","source":"print(1)"}`), Host: newDesk()}
		if _, err := h.Run(b.Context(), t); err != nil {
			b.Skip(err)
		}
	}
}

func BenchmarkBarePython(b *testing.B) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		b.Skip(err)
	}
	python := string(out[:len(out)-1])
	for b.Loop() {
		if err := exec.Command(python, "-c", "print(1)").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
