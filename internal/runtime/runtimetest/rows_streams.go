//go:build unix

package runtimetest

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// streamRows misuse the standard streams.
var streamRows = []row{
	{"16 flood stdout, stderr", func(t testing.TB, h *hostile) {
		for _, fd := range []string{"1", "2"} {
			result, stdout, stderr := h.finish(t, h.spec("flood", fd))
			wantVerdict(t, result, runtime.OutputLimit)
			if got := len(stdout) + len(stderr); got != 1<<20 {
				t.Errorf("kept %d bytes, want exactly the limit", got)
			}
		}
	}},
	{"17 output at the limit", func(t testing.TB, h *hostile) {
		const limit = 100 << 10
		for _, extra := range []int{-1, 0, 1} {
			spec := h.spec("bytes", strconv.Itoa(limit+extra))
			spec.Limits.Output = limit
			result, stdout, _ := h.finish(t, spec)
			want := runtime.OK
			if extra > 0 {
				want = runtime.OutputLimit
			}
			wantVerdict(t, result, want)
			if len(stdout) != min(limit+extra, limit) {
				t.Errorf("%+d: kept %d bytes", extra, len(stdout))
			}
		}
	}},
	{"18 odd bytes", func(t testing.TB, h *hostile) {
		result, stdout, _ := h.finish(t, h.spec("odd"))
		wantVerdict(t, result, runtime.OK)
		if want := "a\x00b\xff\xfe\xc3\x28\x1b[31mred\x1b[0m\r\n\ttail"; stdout != want {
			t.Errorf("stdout %q, want %q", stdout, want)
		}
	}},
	{"19 partial line, then timeout", func(t testing.TB, h *hostile) {
		spec := h.spec("sleep", "no newline")
		spec.Limits.Wall = 200 * time.Millisecond
		result, stdout, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
		if stdout != "no newline" {
			t.Errorf("stdout %q", stdout)
		}
	}},
	{"20 read absent stdin", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("read"))
		wantVerdict(t, result, runtime.OK)
	}},
	{"21 never read 1 MB of stdin", func(t testing.TB, h *hostile) {
		spec := h.spec("read-never")
		spec.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
		run, _ := h.start(t, spec, "ready\n")
		begin := time.Now()
		run.Kill("cancelled")
		wantVerdict(t, run.Wait(), runtime.Killed)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the unread input held the end for %v", took)
		}
		spec = h.spec("exit", "3")
		spec.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.NonzeroExit)
	}},
	{"22 close stdout and go on", func(t testing.TB, h *hostile) {
		before := ownCPU(t)
		spec := h.spec("deaf")
		spec.Limits.Wall = 500 * time.Millisecond
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
		// A program that polls an ended stream spins. Tests that run beside this one count too, so the bound is two processors.
		if used := ownCPU(t) - before; used > 2*result.Wall {
			t.Errorf("this process used %v of CPU time in %v while the program slept", used, result.Wall)
		}
	}},
}

// ownCPU is the CPU time of this process.
func ownCPU(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
