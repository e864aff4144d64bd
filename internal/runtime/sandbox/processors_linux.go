package sandbox

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
)

// processors assigns this process's processors to pinned runs, so that two runs share one only when there are not enough. It
// is safe for concurrent use. A nil *processors pins nothing.
type processors struct {
	all []processor

	mu     sync.Mutex
	pinned map[*pin]struct{} // the runs in progress
}

// processor is one processor of the kernel: a core, or a hardware thread of a core.
type processor struct {
	id   int
	core int // the lowest id of the processors on the same core
}

type pin struct {
	from   *processors
	ids    []int // ascending
	shared bool  // another run was pinned to one of them at the same time; guarded by from.mu
}

// findProcessors lists the processors that this process may use.
func findProcessors() (*processors, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		return nil, fmt.Errorf("find the processors that runs can be pinned to: %w", err)
	}
	p := &processors{pinned: map[*pin]struct{}{}}
	for id := 0; len(p.all) < mask.Count(); id++ {
		if mask.IsSet(id) {
			p.all = append(p.all, processor{id, coreOf(id)})
		}
	}
	return p, nil
}

// coreOf is the first processor of the core that contains this one; itself where the kernel does not report it.
func coreOf(id int) int {
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", id)) // "0,4" or "0-1"
	if err != nil {
		return id
	}
	first, err := strconv.Atoi(strings.TrimSpace(strings.FieldsFunc(string(text)+",", func(r rune) bool { return r == ',' || r == '-' })[0]))
	if err != nil {
		return id
	}
	return first
}

// take assigns a run as many processors as its limit allows at once, or one without such a limit: those with the fewest pinned runs, and
// among these the ones on the cores with the fewest pinned runs.
func (p *processors) take(l runtime.Limits) *pin {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	runs, onCore := map[int]int{}, map[int]int{}
	count := func(id int) {
		runs[id]++
		for _, c := range p.all {
			if c.id == id {
				onCore[c.core]++
			}
		}
	}
	for other := range p.pinned {
		for _, id := range other.ids {
			count(id)
		}
	}
	n := &pin{from: p}
	for range min(len(p.all), max(1, int(math.Ceil(l.CPUs)))) {
		var best *processor
		for i := range p.all {
			c := &p.all[i]
			if slices.Contains(n.ids, c.id) {
				continue
			}
			if best == nil || runs[c.id] < runs[best.id] || runs[c.id] == runs[best.id] && onCore[c.core] < onCore[best.core] {
				best = c
			}
		}
		n.ids = append(n.ids, best.id)
		count(best.id)
	}
	slices.Sort(n.ids)
	for other := range p.pinned {
		if slices.ContainsFunc(other.ids, func(id int) bool { return slices.Contains(n.ids, id) }) {
			n.shared, other.shared = true, true
		}
	}
	p.pinned[n] = struct{}{}
	return n
}

// release returns the processors. It does nothing for a nil pin or at a second call.
func (n *pin) release() {
	if n == nil {
		return
	}
	n.from.mu.Lock()
	defer n.from.mu.Unlock()
	delete(n.from.pinned, n)
}

// report records in the result which processors the run was pinned to.
func (n *pin) report(r *runtime.Result) {
	if n == nil {
		return
	}
	n.from.mu.Lock()
	defer n.from.mu.Unlock()
	r.PinnedCPUs, r.SharedCPUs = n.ids, n.shared
}

// order is the list of processors for the init.
func (n *pin) order() []int64 {
	if n == nil {
		return nil
	}
	all := make([]int64, len(n.ids))
	for i, id := range n.ids {
		all[i] = int64(id)
	}
	return all
}
