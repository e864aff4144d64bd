package task

import (
	"math"
	goruntime "runtime"
	"strconv"

	"github.com/pawl-run/pawl/internal/runtime"
)

// threadVariables set how many threads libraries and language runtimes start. Without them, each starts as many as the host has
// processors: on a host with 128, OpenBLAS in a program limited to 64 processes and threads fails as soon as numpy is imported.
var threadVariables = []string{
	"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
	"VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "GOMAXPROCS",
}

// processorsOf is the number of processors that a run may use. Without a limit it is one if the runtime pins runs to
// processors, else as many as this process may use. A program may have several libraries that start threads, so it is at most
// a quarter of the limit on processes and threads.
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

// threads are the variables for a run with that number of processors.
func threads(processors int) map[string]string {
	n := strconv.Itoa(processors)
	all := make(map[string]string, len(threadVariables))
	for _, name := range threadVariables {
		all[name] = n
	}
	return all
}
