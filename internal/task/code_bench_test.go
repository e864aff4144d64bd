//go:build unix

package task_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
)

// BenchmarkPython is one evaluation of a short program, and BenchmarkCases one with 50 cases. The same program runs as often without
// Pawl, with only the interpreter, alternating so that both run on the same machine. Reported are the processor time of a run, in which
// the interpreter also reads its site-packages, the time that Pawl adds, and the rate as a share of the loop's.
func BenchmarkPython(b *testing.B) { compare(b, 0, nil) }

func BenchmarkCases(b *testing.B) { compare(b, 50, nil) }

// BenchmarkWarmPython and BenchmarkWarmCases fork the programs from an interpreter.
func BenchmarkWarmPython(b *testing.B) { compare(b, 0, &task.Warm{}) }

func BenchmarkWarmCases(b *testing.B) { compare(b, 50, &task.Warm{}) }

func compare(b *testing.B, cases int, warm *task.Warm) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		b.Skip(err)
	}
	python, file := strings.TrimSpace(string(out)), filepath.Join(b.TempDir(), "main.py")
	if err := os.WriteFile(file, []byte("print(1)\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	all := make([]string, cases)
	for i := range all {
		all[i] = fmt.Sprintf(`{"name":"case %d","expect":"1\n"}`, i)
	}
	payload := `{"language":"python","source":"print(1)\n"}`
	if cases > 0 {
		payload = `{"language":"python","source":"print(1)\n","cases":[` + strings.Join(all, ",") + `]}`
	}
	rt, err := sandbox.New(sandbox.Options{})
	if err != nil {
		b.Skip(err)
	}
	seen := &forks{Runtime: rt}
	h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{seen}, Dir: std, Languages: warmPython(b, warm)})
	if err != nil {
		b.Fatal(err)
	}
	var program time.Duration
	evaluate := func() {
		t := &task.Task{Execution: flow.ID{1}, Attempt: 1, Payload: json.RawMessage(payload), Host: newDesk()}
		output, err := h.Run(b.Context(), t)
		if err != nil {
			b.Fatal(err)
		}
		var result api.CodeResult
		if err := json.Unmarshal(output, &result); err != nil {
			b.Fatal(err)
		}
		program += time.Duration(result.CPUMS * float64(time.Millisecond))
	}
	evaluate() // tools are searched for once
	for warm != nil && seen.warm.Load() == 0 {
		evaluate()
	}
	seen.warm.Store(0)
	program = 0
	var inside, outside cost
	runs := max(1, cases)
	for b.Loop() {
		inside.add(evaluate)
		outside.add(func() {
			for range runs {
				if err := exec.Command(python, "-S", file).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	inside.add(func() { _ = rt.Close() }) // the zygote's usage is counted when it ends
	n := float64(b.N * runs)
	if warm != nil {
		b.ReportMetric(float64(seen.warm.Load())/n, "warm")
	}
	b.ReportMetric((inside.cpu-program).Seconds()*1000/n, "own-cpu-ms/run")
	b.ReportMetric(program.Seconds()*1000/n, "program-cpu-ms/run")
	b.ReportMetric(outside.cpu.Seconds()*1000/n, "bare-cpu-ms/run")
	b.ReportMetric(outside.wall.Seconds()/inside.wall.Seconds(), "of-bare-rate")
}

// cost is what something has taken.
type cost struct{ wall, cpu time.Duration }

func (c *cost) add(do func()) {
	begin, before := time.Now(), used()
	do()
	c.wall += time.Since(begin)
	c.cpu += used() - before
}

// used is the processor time of this process and of its ended children.
func used() (total time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err == nil {
			total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	return total
}
