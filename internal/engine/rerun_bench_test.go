package engine

import (
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// BenchmarkRerun reruns a workflow of 10,000 items, all of which are reused, from the plan to the end. It is run with -benchtime 1x.
func BenchmarkRerun(b *testing.B) {
	const items = 10_000
	benchOnEachStore(b, func(r *rig) {
		r.define(`
name: w
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {v: "${{ item }}"}}
`)
		r.worker().serve(echo)
		id := r.submit(Submission{Action: "w", Input: ints(items)})
		r.ended(id)
		begun, used := time.Now(), processor(r)
		again, _ := r.rerun(id, RerunOptions{})
		planned := time.Since(begun)
		if x := r.ended(again); x.Stage != flow.Completed {
			r.Fatalf("the rerun is %s", x.Stage)
		}
		r.TB.(*testing.B).ReportMetric(items/time.Since(begun).Seconds(), "items/s")
		r.TB.(*testing.B).ReportMetric(items/(processor(r)-used).Seconds(), "items/cpu-s") // least affected by other load on the machine
		r.TB.(*testing.B).ReportMetric(float64(planned.Milliseconds()), "ms-to-submit")
	})
}

// processor is the processor time of this process.
func processor(r *rig) time.Duration {
	r.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		r.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
