//go:build unix

package runtimetest

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// limitRows exhaust a run's limits and end in every way.
var limitRows = []row{
	{"01 busy loop", func(t testing.TB, h *hostile) {
		spec := h.spec("spin")
		spec.Limits.Wall = 300 * time.Millisecond
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
		wantHit(t, result, runtime.HitWall)
		spec = h.spec("spin")
		spec.Limits.CPU = 200 * time.Millisecond
		result, _, _ = h.finish(t, spec)
		wantVerdict(t, result, runtime.CPUTimeout)
		wantHit(t, result, runtime.HitCPU)
		if result.CPU < 200*time.Millisecond || result.CPU > 2*time.Second {
			t.Errorf("used %v of CPU time, the limit was 200ms", result.CPU)
		}
	}},
	{"02 sleep for ever", func(t testing.TB, h *hostile) {
		spec := h.spec("sleep")
		spec.Limits.Wall = 200 * time.Millisecond
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
	}},
	{"03 ignore TERM, HUP, INT", func(t testing.TB, h *hostile) {
		run, _ := h.start(t, h.spec("stubborn"), "ready\n")
		begin := time.Now()
		run.Kill("cancelled")
		wantVerdict(t, run.Wait(), runtime.Killed)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the kill took %v", took)
		}
	}},
	{"04 memory bomb", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("memory"))
		wantVerdict(t, result, runtime.OOM)
		wantHit(t, result, runtime.HitMemory)
		if result.PeakMemory > 256<<20 {
			t.Errorf("reached %d bytes, the limit was 64 MiB", result.PeakMemory)
		}
	}},
	{"05 child out of memory, parent exits 0", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("child-memory"))
		wantVerdict(t, result, runtime.OK)
		wantHit(t, result, runtime.HitMemory)
		if !result.ChildOOM {
			t.Errorf("child_oom is not set: %+v", result)
		}
	}},
	{"06 fill memfd, tmp and shm", func(t testing.TB, h *hostile) {
		for _, where := range [][]string{
			{"fill-memfd"}, {"fill-file", "/dev/shm/fill"}, {"fill-file", "/tmp/fill"}, {"fill-file", "fill"},
		} {
			spec := h.spec(where[0], where[1:]...)
			spec.Limits.Disk = 256 << 20
			result, _, stderr := h.finish(t, spec)
			// The exit code is an errno: no space, or no such call.
			if result.Verdict != runtime.OOM && !slices.Contains([]int{1, 28, 38}, result.ExitCode) {
				t.Errorf("%v: %+v %s", where, result, stderr)
			}
		}
	}},
	{"07 page-cache pressure", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("page-cache"))
		wantVerdict(t, result, runtime.OK)
	}},
	{"08 SIGKILL itself", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("signal", "9"))
		wantVerdict(t, result, runtime.Signal)
		if result.Signal != "SIGKILL" {
			t.Errorf("signal %s, want SIGKILL", result.Signal)
		}
	}},
	{"09 exit 137", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("exit", "137"))
		wantVerdict(t, result, runtime.NonzeroExit)
		if result.ExitCode != 137 {
			t.Errorf("exit code %d, want 137", result.ExitCode)
		}
	}},
	{"10 SIGSEGV, SIGABRT", func(t testing.TB, h *hostile) {
		for want, args := range map[string][]string{"SIGSEGV": {"segfault"}, "SIGABRT": {"signal", "6"}} {
			spec := h.spec(args[0], args[1:]...)
			spec.Collect, spec.CollectInto = []string{"core*"}, t.TempDir()
			result, _, _ := h.finish(t, spec)
			wantVerdict(t, result, runtime.Signal)
			if result.Signal != want || len(result.Files) > 0 || len(result.Refused) > 0 {
				t.Errorf("want %s and no core file: %+v", want, result)
			}
		}
	}},
	{"11 fork bomb", func(t testing.TB, h *hostile) {
		result, stdout, _ := h.finish(t, h.spec("forks"))
		wantVerdict(t, result, runtime.OK)
		wantPidsHit(t, h, result)
		count, why, _ := strings.Cut(strings.TrimSpace(stdout), " ")
		if n, err := strconv.Atoi(count); err != nil || why != "EAGAIN" || n < 8 || n > 48 {
			t.Errorf("forked %q, want EAGAIN after about 32 processes", stdout)
		}
		run, _ := h.start(t, h.spec("wild-forks"), "ready\n")
		begin := time.Now()
		run.Kill("cancelled")
		wantVerdict(t, run.Wait(), runtime.Killed)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("killing the fork bomb took %v", took)
		}
	}},
	{"12 thread bomb", func(t testing.TB, h *hostile) {
		result, stdout, _ := h.finish(t, h.spec("threads"))
		wantVerdict(t, result, runtime.OK)
		wantPidsHit(t, h, result)
		count, why, _ := strings.Cut(strings.TrimSpace(stdout), " ")
		if n, err := strconv.Atoi(count); err != nil || why != "EAGAIN" || n < 8 || n > 48 {
			t.Errorf("created %q, want EAGAIN after about 32 threads", stdout)
		}
	}},
	{"13 daemon holding stdout", func(t testing.TB, h *hostile) {
		run, out := h.start(t, h.spec("daemon"), "parent done\n") // the parent then exits: the test does not measure how long a start takes
		begin := time.Now()
		wantVerdict(t, run.Wait(), runtime.OK)
		if took := time.Since(begin); out.String() != "parent done\n" || took > 2*time.Second {
			t.Errorf("stdout %q after %v", out.String(), took)
		}
	}},
	{"14 zombie factory", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("zombies"))
		wantVerdict(t, result, runtime.OK)
	}},
	{"15 fill tmp, inodes", func(t testing.TB, h *hostile) {
		for _, args := range [][]string{{"fill-file", "/tmp/fill"}, {"fill-file", "fill"}, {"inodes", "/tmp"}, {"inodes", "."}} {
			spec := h.spec(args[0], args[1:]...)
			spec.Limits.Memory, spec.Limits.Disk = 256<<20, 16<<20 // 4,096 files: Docker took 38 s to fill and clear four times 16,384
			result, _, _ := h.finish(t, spec)
			if result.ExitCode != int(syscall.ENOSPC) {
				t.Errorf("%v: %+v, want ENOSPC as the exit code", args, result)
			}
		}
	}},
}

// wantHit checks that a run reached this limit and no other.
func wantHit(t testing.TB, result runtime.Result, limit string) {
	t.Helper()
	if !slices.Equal(result.LimitsHit, []string{limit}) {
		t.Errorf("met the limits %v, want %s", result.LimitsHit, limit)
	}
}

// wantPidsHit checks that a run reached its limit on processes, where a cgroup of Pawl counts them.
func wantPidsHit(t testing.TB, h *hostile, result runtime.Result) {
	t.Helper()
	if _, engine := h.runtime.(runtime.Imaged); !engine && slices.Contains([]string{"cgroup-v1", "cgroup-v2", "hybrid"}, result.Enforcement) {
		wantHit(t, result, runtime.HitPids)
	}
}
