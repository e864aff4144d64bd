//go:build unix

package runtimetest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// furtherRows are attacks that are not in the table.
var furtherRows = []row{
	{"50 exhaust the kernel", func(t testing.TB, h *hostile) {
		all := []string{"descriptors", "pipes", "sockets", "messages", "semaphores", "shared-memory", "shared-pages", "zero-pages",
			"page-tables", "mappings", "signals"}
		if !h.suite.brief { // the kernel takes a second to undo each
			all = append(all, "watches", "timers")
		}
		for _, what := range all {
			spec := h.spec("exhaust", what)
			spec.Limits.CPU, spec.Limits.Wall = 10*time.Second, 10*time.Second
			begin := time.Now()
			result, _, stderr := h.finish(t, spec)
			// Refused, or killed for memory, and not merely out of time or of things to allocate.
			wantVerdict(t, result, runtime.OK, runtime.OOM)
			t.Logf("%s: %s after %v, %d MiB %s", what, result.Verdict, time.Since(begin).Round(time.Millisecond),
				result.PeakMemory>>20, stderr)
		}
	}},
	{"51 storm of calls", func(t testing.TB, h *hostile) {
		seeds := 3
		if h.suite.brief {
			seeds = 1
		}
		for seed := range seeds {
			spec := h.spec("storm", "4", strconv.Itoa(seed))
			result, stdout, stderr := h.finish(t, spec)
			// The program may well hit itself; the sandbox and the host must not be affected.
			if result.Verdict == runtime.InfraError {
				t.Errorf("%+v %q %s", result, stdout, stderr)
			}
			t.Logf("%s %s %q", result.Verdict, result.Reason, stdout)
		}
	}},
	{"52 meddle with how it is watched", func(t testing.TB, h *hostile) {
		for _, how := range []string{"hide", "stop", "vfork"} {
			run, _ := h.start(t, h.spec("meddle", how), "ready\n")
			begin := time.Now()
			run.Kill("cancelled")
			wantVerdict(t, run.Wait(), runtime.Killed)
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("%s: the kill took %v", how, took)
			}
			spec := h.spec("meddle", how)
			spec.Limits.Wall = time.Second // enough to print a line beside two busy loops, where 200 ms were not
			result, stdout, _ := h.finish(t, spec)
			wantVerdict(t, result, runtime.Timeout)
			if stdout != "ready\n" {
				t.Errorf("%s: stdout %q", how, stdout)
			}
		}
		for _, how := range []string{"nonblock", "steal"} {
			spec := h.spec("meddle", how)
			spec.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
			result, _, _ := h.finish(t, spec)
			wantVerdict(t, result, runtime.OK)
		}
	}},
	{"54 work in children that nobody waits for", func(t testing.TB, h *hostile) {
		spec := h.spec("unpaid-work")
		spec.Limits.CPU, spec.Limits.Wall = 150*time.Millisecond, 3*time.Second
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.CPUTimeout)
	}},
	{"53 Python", func(t testing.TB, h *hostile) {
		python := shell("command -v python3 >/dev/null && exec python3 ./hostile.py \"$@\"; echo absent", h.token, h.namespace)
		python.Env = append(python.Env, "PAWL_HOSTILE_TOKEN="+h.token)
		source, err := sources.ReadFile("programs/hostile.py")
		if err != nil {
			t.Fatal(err)
		}
		python.Files = []runtime.File{{Path: "hostile.py", Content: source}}
		result, stdout, stderr := h.finish(t, python)
		if stdout == "absent\n" {
			t.Skip("there is no python3 in the runtime")
		}
		wantVerdict(t, result, runtime.OK)
		if stdout, fine := strings.CutSuffix(stdout, "works\n"); !fine || stderr != "" {
			t.Errorf("a harmless Python does not work: %q %s", stdout, stderr)
		} else {
			h.nothing(t, stdout)
		}
	}},
}
