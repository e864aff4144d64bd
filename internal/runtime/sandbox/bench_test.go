//go:build linux

package sandbox

import (
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
)

// The benchmarks of this file alternate each measurement with the same work outside of a sandbox, so that both run on the same machine,
// and report both and their ratio. A run is measured from its start until it has ended completely.

// initBinary lets the benchmarks use the init of the real program, which is seven times larger than the tests'.
var initBinary = flag.String("sandbox.init", "", "the pawl binary whose init the benchmarks use; empty: this one")

func bench(tb testing.TB, o Options) *Runtime {
	tb.Helper()
	warm := o.Warm
	o.Warm = 0
	r := factory(o)(tb).(*Runtime)
	if *initBinary != "" {
		r.self.close()
		r.self = executable{*initBinary, -1}
		r.zygote.path = *initBinary
	}
	if warm > 0 {
		r.pool = newPool(r, warm, defaultKeepWarm)
		settle(tb, r, warm)
	}
	return r
}

// BenchmarkCold builds every sandbox on demand.
func BenchmarkCold(b *testing.B) { compareTrue(b, Options{}, 0) }

// BenchmarkWarm uses waiting sandboxes, one start at a time with 10 ms in between.
func BenchmarkWarm(b *testing.B) { compareTrue(b, Options{Warm: 4}, 10*time.Millisecond) }

// BenchmarkWarmAfterIdle does the same after 50 ms, when the kernel's locks have gone cold.
func BenchmarkWarmAfterIdle(b *testing.B) { compareTrue(b, Options{Warm: 4}, 50*time.Millisecond) }

func compareTrue(b *testing.B, o Options, think time.Duration) {
	spec := static(b)
	compare(b, o, think, spec, func() error { return exec.Command(spec.Argv[0], spec.Argv[1:]...).Run() })
}

// BenchmarkPython starts an interpreter that does nothing.
func BenchmarkPython(b *testing.B) {
	compare(b, Options{Warm: 4}, 10*time.Millisecond, python(b, "pass"),
		func() error { return exec.Command(pythonPath, "-c", "pass").Run() })
}

const pythonPath = "/usr/bin/python3"

func python(tb testing.TB, program string) runtime.Spec {
	tb.Helper()
	if _, err := os.Stat(pythonPath); err != nil {
		tb.Skipf("%s is missing", pythonPath)
	}
	return runtime.Spec{Argv: []string{pythonPath, "-c", program}, Env: []string{"PATH=/usr/bin:/bin"}}
}

func compare(b *testing.B, o Options, think time.Duration, spec runtime.Spec, bare func() error) {
	r := bench(b, o)
	defer r.Close()
	var inside, outside []time.Duration
	var insideCPU, outsideCPU time.Duration
	for b.Loop() {
		time.Sleep(think)
		before := used(r)
		inside = append(inside, timed(func() { finish(b, r, spec) }))
		insideCPU += used(r) - before
		time.Sleep(think)
		before = used(r)
		outside = append(outside, timed(func() {
			if err := bare(); err != nil {
				b.Fatal(err)
			}
		}))
		outsideCPU += used(r) - before
	}
	b.ReportMetric(insideCPU.Seconds()*1000/float64(b.N), "cpu-ms")
	b.ReportMetric(outsideCPU.Seconds()*1000/float64(b.N), "bare-cpu-ms")
	reportTimes(b, inside, "")
	reportTimes(b, outside, "bare-")
	b.ReportMetric(float64(at(inside, 0.5))/float64(at(outside, 0.5)), "x-bare")
}

// used is the processor time of this process, of all its ended children, and of the zygote.
func used(r *Runtime) (total time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err == nil {
			total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", r.zygote.id())) // "nanoseconds on a processor, …"
	if err != nil {
		return total // it has not been started
	}
	ran, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseInt(ran, 10, 64)
	return total + time.Duration(n)
}

// settle waits until the pool is full.
func settle(tb testing.TB, r runtime.Runtime, size int) {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.(*Runtime).pool.len() < size {
		if <-tick.C; time.Now().After(deadline) {
			tb.Fatalf("the pool holds %d sandboxes of %d", r.(*Runtime).pool.len(), size)
		}
	}
}

// finish runs a program that must end well.
func finish(tb testing.TB, r runtime.Runtime, spec runtime.Spec) {
	tb.Helper()
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		tb.Error(err)
		return
	}
	if result := run.Wait(); result.Verdict != runtime.OK {
		tb.Errorf("%+v", result)
	}
}

func timed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

func at(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

func reportTimes(b *testing.B, d []time.Duration, prefix string) {
	ms := func(q float64) float64 { return float64(at(d, q)) / float64(time.Millisecond) }
	b.ReportMetric(ms(0.5), prefix+"p50-ms")
	b.ReportMetric(ms(0.99), prefix+"p99-ms")
}

// BenchmarkEight runs eight at a time; one iteration is one run.
func BenchmarkEight(b *testing.B) {
	spec := static(b)
	for name, o := range map[string]Options{"Cold": {}, "Warm": {Warm: 8}} {
		b.Run(name, func(b *testing.B) {
			r := bench(b, o)
			defer r.Close()
			b.ResetTimer()
			took := queue(8, b.N, func() { finish(b, r, spec) })
			b.StopTimer()
			bare := queue(8, b.N, func() { _ = exec.Command(spec.Argv[0], spec.Argv[1:]...).Run() })
			b.ReportMetric(float64(b.N)/took.Seconds(), "runs/s")
			b.ReportMetric(float64(b.N)/bare.Seconds(), "bare-runs/s")
		})
	}
}

// BenchmarkPythonQueue runs programs of 10 ms each from a queue with as many slots as a worker has, without and with sandboxes. One
// iteration is the whole queue of 1,000.
func BenchmarkPythonQueue(b *testing.B) {
	const slots, length = 4, 1000
	const program = "import time; end = time.process_time() + 0.01\nwhile time.process_time() < end: pass"
	spec := python(b, program)
	r := bench(b, Options{Warm: slots})
	defer r.Close()
	var inside, outside time.Duration
	for b.Loop() {
		// Both alternate in tenths, so that the machine's load affects both alike.
		for range 10 {
			outside += queue(slots, length/10, func() { _ = exec.Command(pythonPath, "-c", program).Run() })
			inside += queue(slots, length/10, func() { finish(b, r, spec) })
		}
	}
	b.ReportMetric(inside.Seconds()/float64(b.N), "s")
	b.ReportMetric(outside.Seconds()/float64(b.N), "bare-s")
	b.ReportMetric(inside.Seconds()/outside.Seconds(), "x-bare")
}

// queue runs n jobs on a number of slots and returns how long all took.
func queue(slots, n int, job func()) time.Duration {
	return timed(func() {
		jobs := make(chan struct{}, n)
		for range n {
			jobs <- struct{}{}
		}
		close(jobs)
		var working sync.WaitGroup
		for range slots {
			working.Go(func() {
				for range jobs {
					job()
				}
			})
		}
		working.Wait()
	})
}

// BenchmarkKill kills a fork bomb of 300 processes and measures the time until it has ended completely.
func BenchmarkKill(b *testing.B) {
	bomb := compileC(b, "bomb", `#include <unistd.h>
int main(void) {
	for (int i = 0; i < 300; i++) {
		switch (fork()) {
		case 0: for (;;) if (fork() < 0) usleep(1000);
		case -1: i = 300;
		}
	}
	write(1, "full\n", 5);
	for (;;) fork();
}`)
	r := bench(b, Options{Warm: 1})
	defer r.Close()
	var took []time.Duration
	for b.Loop() {
		full := make(signal, 1)
		run, err := r.Start(context.Background(), runtime.Spec{
			Argv: []string{bomb}, Mounts: []runtime.Mount{{Path: filepath.Dir(bomb)}}, Stdout: full,
			Limits: runtime.Limits{Pids: 300},
		})
		if err != nil {
			b.Fatal(err)
		}
		<-full
		took = append(took, timed(func() {
			run.Kill("the benchmark")
			if result := run.Wait(); result.Verdict != runtime.Killed {
				b.Errorf("%+v", result)
			}
		}))
	}
	reportTimes(b, took, "")
}

// signal is a writer that signals the first bytes.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}

// BenchmarkFlood runs a program that writes 4 GB and measures by how much this process grows.
func BenchmarkFlood(b *testing.B) {
	const size = 4 << 30
	r := bench(b, Options{})
	defer r.Close()
	grown := int64(0)
	for b.Loop() {
		before := residentOf(os.Getpid())
		peak := before
		quit, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-quit:
					return
				case <-tick.C:
					peak = max(peak, residentOf(os.Getpid()))
				}
			}
		}()
		finish(b, r, runtime.Spec{
			Argv: []string{"head", "-c", strconv.Itoa(size), "/dev/zero"}, Env: []string{"PATH=/usr/bin:/bin"},
			Stdout: make(signal, 1), Limits: runtime.Limits{Output: 2 * size},
		})
		close(quit)
		<-stopped
		grown = max(grown, peak-before)
	}
	b.SetBytes(size)
	b.ReportMetric(float64(grown)/(1<<20), "grown-MB")
}

// BenchmarkIdleMemory measures the memory of a sandbox in the pool, with kernel memory, by a memory cgroup around this process; and the
// private memory of its init. It also measures their processor time.
func BenchmarkIdleMemory(b *testing.B) {
	const size = 64
	used := accounted(b)
	var all, private, ticks float64
	for b.Loop() {
		fill(b, size, func(*Runtime) {}) // memory that stays allocated after the first is not counted
		before := used()
		fill(b, size, func(r *Runtime) {
			all += float64(used()-before) / size
			before := r.pool.ticks()
			time.Sleep(2 * time.Second)
			ticks += float64(r.pool.ticks() - before)
			for _, w := range r.pool.stock {
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", w.pid))
				if err != nil {
					b.Fatal(err)
				}
				private += float64(kilobytes(text, "Private_Dirty:")+kilobytes(text, "Private_Clean:")) / size
			}
		})
	}
	b.ReportMetric(all/float64(b.N)/(1<<20), "MB-each")
	b.ReportMetric(private/float64(b.N)/(1<<20), "private-MB-each")
	b.ReportMetric(ticks/float64(b.N), "cpu-ticks")
}

// accounted puts this process into its own memory cgroup until the end of the benchmark; the returned function reads the usage.
func accounted(b *testing.B) func() int64 {
	c, err := findCgroups()
	if err != nil {
		b.Skip(err)
	}
	root, file := c.memory, "memory.usage_in_bytes"
	if c.limits {
		root, file = c.unified, "memory.current"
	}
	dir := filepath.Join(root, c.prefix+"benchmark")
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := write(dir, "cgroup.procs", "0"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := write(root, "cgroup.procs", "0"); err != nil {
			b.Error(err)
		}
		if err := os.Remove(dir); err != nil {
			b.Error(err)
		}
	})
	return func() int64 {
		goruntime.GC()
		time.Sleep(200 * time.Millisecond) // the kernel frees memory a while later
		return number(dir, file)
	}
}

// ticks is the processor time of all sandboxes in the pool.
func (p *pool) ticks() (total int64) {
	for _, w := range p.stock {
		total += int64(cpuOf(w.pid, true) / clockTick)
	}
	return total
}

func fill(b *testing.B, size int, look func(*Runtime)) {
	r := bench(b, Options{Warm: size})
	look(r)
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

// static is a run of a static program that exits at once: the host's busybox, or one built for it.
func static(tb testing.TB) runtime.Spec {
	tb.Helper()
	const busybox = "/usr/bin/busybox"
	if f, err := elf.Open(busybox); err == nil {
		defer f.Close()
		if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) == 0 {
			return runtime.Spec{Argv: []string{busybox, "true"}}
		}
	}
	program := compileC(tb, "true", "int main(void) { return 0; }\n")
	return runtime.Spec{Argv: []string{program}, Mounts: []runtime.Mount{{Path: filepath.Dir(program)}}}
}

// compileC builds a static program in its own directory.
func compileC(tb testing.TB, name, text string) string {
	tb.Helper()
	dir := tb.TempDir()
	program := filepath.Join(dir, name)
	source := filepath.Join(dir, name+".c")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-O2", "-o", program, source).CombinedOutput(); err != nil {
		tb.Skipf("gcc cannot build a static program: %v\n%s", err, out)
	}
	return program
}

// BenchmarkPinned runs as many computing programs at once as there are processors, and twice as many, alternating between any processor
// and pinned. One iteration is one round of both; it reports the spread of their processor and wall times.
func BenchmarkPinned(b *testing.B) {
	for _, times := range []int{1, 2} {
		atOnce := times * goruntime.NumCPU()
		b.Run(fmt.Sprintf("%dAtOnce", atOnce), func(b *testing.B) {
			free, pinned := bench(b, Options{Warm: atOnce}), bench(b, Options{Warm: atOnce, PinCPUs: true})
			defer free.Close()
			defer pinned.Close()
			cpu, wall := map[*Runtime][]time.Duration{}, map[*Runtime][]time.Duration{}
			for b.Loop() {
				for _, r := range []*Runtime{free, pinned} {
					settle(b, r, atOnce)
					var mu sync.Mutex
					var all sync.WaitGroup
					for range atOnce {
						all.Go(func() {
							run, err := r.Start(context.Background(), python(b, "x = 0\nfor i in range(3_000_000): x += i"))
							if err != nil {
								b.Error(err)
								return
							}
							result := run.Wait()
							mu.Lock()
							cpu[r], wall[r] = append(cpu[r], result.CPU), append(wall[r], result.Wall)
							mu.Unlock()
						})
					}
					all.Wait()
				}
			}
			for r, name := range map[*Runtime]string{free: "free", pinned: "pinned"} {
				for what, d := range map[string][]time.Duration{"cpu": cpu[r], "wall": wall[r]} {
					b.ReportMetric(at(d, 0.5).Seconds()*1000, name+"-"+what+"-p50-ms")
					b.ReportMetric(float64(at(d, 0.9))/float64(at(d, 0.1)), name+"-"+what+"-p90/p10")
				}
			}
		})
	}
}
