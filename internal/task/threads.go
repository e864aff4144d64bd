package task

import (
	"math"
	goruntime "runtime"
	"strconv"

	"github.com/pawl-run/pawl/internal/runtime"
)

// threadVariables say how many threads libraries and language runtimes start. Without them each asks how many processors
// the host has: on one of 128, OpenBLAS in a program with 64 processes and threads fails as soon as numpy is imported.
var threadVariables = []string{
	"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
	"VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "GOMAXPROCS",
}

// processorsOf is how many processors a run may use: those of its limit, or else one where the runtime pins runs and those of this process
// where it does not, and no more than leave room for four threads on each within the limit of processes and threads, since a
// program may have several libraries that start some.
func processorsOf(l runtime.Limits, pins bool) int {
	const threadsEach = 4
	n := goruntime.NumCPU()
	if l.CPUs == 0 && pins {
		n = 1
	} else if l.CPUs > 0 {
		n = min(n, int(math.Ceil(l.CPUs)))
	}
	return max(1, min(n, l.Pids/threadsEach))
}

// processors is processorsOf for a run of the evaluation.
func (e *evaluation) processors(l runtime.Limits) int {
	p, ok := e.runtime.(runtime.Pinner)
	return processorsOf(l, ok && p.Pins())
}

// threads are the variables for a run that may use so many processors.
func threads(processors int) map[string]string {
	n := strconv.Itoa(processors)
	all := make(map[string]string, len(threadVariables))
	for _, name := range threadVariables {
		all[name] = n
	}
	return all
}
