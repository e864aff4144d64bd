//go:build linux

package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// BenchmarkColdStart measures a run from nothing to nothing — start, exit, reaping, clean-up — of a static program that
// does nothing, and the same program started bare, in turns so that both meet the same machine.
func BenchmarkColdStart(b *testing.B) {
	program := staticTrue(b)
	dir := filepath.Dir(program)
	compare(b, runtime.Spec{
		Argv: []string{program}, Mounts: []runtime.Mount{{Path: dir}},
	}, func() error { return exec.Command(program).Run() })
}

// BenchmarkPython does the same with an interpreter that does nothing.
func BenchmarkPython(b *testing.B) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		b.Skipf("%s is missing", python)
	}
	compare(b, runtime.Spec{
		Argv: []string{python, "-c", "pass"}, Env: []string{"PATH=/usr/bin:/bin"},
	}, func() error { return exec.Command(python, "-c", "pass").Run() })
}

func compare(b *testing.B, spec runtime.Spec, bare func() error) {
	r, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	var inside, outside []time.Duration
	for b.Loop() {
		begin := time.Now()
		run, err := r.Start(context.Background(), spec)
		if err != nil {
			b.Fatal(err)
		}
		if result := run.Wait(); result.Verdict != runtime.OK {
			b.Fatalf("%+v", result)
		}
		inside = append(inside, time.Since(begin))
		begin = time.Now()
		if err := bare(); err != nil {
			b.Fatal(err)
		}
		outside = append(outside, time.Since(begin))
	}
	slices.Sort(inside)
	slices.Sort(outside)
	at := func(d []time.Duration, q float64) float64 {
		return float64(d[int(q*float64(len(d)-1))]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(inside, 0.5), "p50-ms")
	b.ReportMetric(at(inside, 0.99), "p99-ms")
	b.ReportMetric(at(outside, 0.5), "bare-p50-ms")
	b.ReportMetric(at(inside, 0.5)/at(outside, 0.5), "x-bare")
}

// staticTrue builds a static program that exits at once.
func staticTrue(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	program := filepath.Join(dir, "true")
	source := filepath.Join(dir, "true.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-O2", "-o", program, source).CombinedOutput(); err != nil {
		tb.Skipf("gcc cannot build a static program: %v\n%s", err, out)
	}
	return program
}
