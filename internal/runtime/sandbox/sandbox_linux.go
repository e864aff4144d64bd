package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runs"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
	"github.com/pawl-run/pawl/internal/runtime/spawn"
)

// Runtime is the Linux sandbox. It is safe for concurrent use.
type Runtime struct {
	layout     *layout
	cgroups    *cgroups // nil: rlimits and the watchdog
	whyNot     error    // the reason why there are no cgroups
	privileged bool
	ids        hostIDs
	thread     *spawn.Thread
	self       executable
	zygote     *zygote
	pool       *pool // nil: every start builds its sandbox
	templates  *templates
	networks   *networks
	processors *processors // nil: runs are not pinned

	runs runs.Set[*run] // including the starts of bases

	based, baseless atomic.Bool // a base has been tried with success; no base can be built
}

// New prepares the sandbox: it looks for cgroups, compiles the filter and removes what dead processes of Pawl left in
// the cgroup tree. Only Start and Diagnose find out whether the host can isolate.
func New(o Options) (runtime.Runtime, error) {
	r := &Runtime{privileged: os.Geteuid() == 0}
	var err error
	if r.ids, err = findHostIDs(r.privileged); err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	if r.self, err = findExecutable(r.privileged); err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	if o.WithoutCgroups {
		r.whyNot = errSwitchedOff
	} else {
		r.cgroups, r.whyNot = findCgroups()
	}
	if r.layout, err = planLayout(r.cgroups == nil); err != nil {
		r.self.close()
		return nil, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	if o.PinCPUs {
		if r.processors, err = findProcessors(); err != nil {
			r.self.close()
			return nil, err
		}
	}
	filter, err := compileFilter(r.cgroups == nil, o.PinCPUs)
	if err != nil {
		r.self.close()
		return nil, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	r.networks = newNetworks(r.cgroups, r.privileged)
	r.thread = spawn.NewThread()
	plan := pid1.Plan{Cover: r.layout.cover, Layout: r.layout.steps, Filter: filter}
	r.zygote = &zygote{path: r.self.path, plan: plan.Encode(), thread: r.thread}
	r.templates = newTemplates(r, filter, o.TemplateFailed)
	if o.Warm > 0 {
		keep := cmp.Or(o.KeepWarm, defaultKeepWarm)
		r.pool = newPool(r, o.Warm, keep)
	}
	return r, nil
}

// Name returns "sandbox".
func (r *Runtime) Name() string { return Name }

// Degraded says why rlimits and the watchdog enforce the limits instead of cgroups; nil if cgroups do.
func (r *Runtime) Degraded() error {
	if r.cgroups != nil {
		return nil
	}
	return r.whyNot
}

// Pins reports whether every run gets its own processors.
func (r *Runtime) Pins() bool { return r.processors != nil }

// Isolation returns runtime.Contained.
func (r *Runtime) Isolation() runtime.Isolation { return runtime.Contained }

// Held returns the cgroups of sandboxes that were built in advance and wait for a run; full means that no more are built until
// one is taken.
func (r *Runtime) Held() (cgroups []string, full bool) { return r.pool.held() }

// Close kills every run, waits for the end of the runs and of the pool, and releases the forking thread.
func (r *Runtime) Close() error {
	if !r.runs.Close() {
		return nil
	}
	r.pool.close()
	r.templates.close()
	r.runs.Wait()
	r.networks.close()
	r.zygote.close()
	r.thread.Close()
	r.self.close()
	return nil
}

// minMemory is the memory that the kernel itself needs to start a process in a cgroup.
const minMemory = 1 << 20

// Start starts a run in a new sandbox and returns when the program is executing.
func (r *Runtime) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	return r.startIn(ctx, spec, nil)
}

// startIn is Start for a run of a series; s is nil for other runs.
func (r *Runtime) startIn(ctx context.Context, spec runtime.Spec, s *series) (runtime.Run, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.Or(runtime.DefaultLimits())
	if spec.Limits.Memory < minMemory {
		return nil, fmt.Errorf("%w: a memory limit of %d bytes; nothing can start in less than %d",
			runtime.ErrSpec, spec.Limits.Memory, minMemory)
	}
	if spec.Limits.CPUs > 0 && !r.cgroups.limitsCPUs() {
		return nil, fmt.Errorf("%w: limits.cpus is %g, and no cgroup with the cpu controller is to be had here: "+
			"leave it out, or delegate the controller to Pawl (systemd: Delegate=yes)", runtime.ErrUnavailable, spec.Limits.CPUs)
	}
	pinned := r.processors.take(spec.Limits)
	started, err := r.start(ctx, spec, pinned, s)
	if err != nil {
		pinned.release()
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	return started, nil
}

// hostIDs assigns the programs' ids on the host.
type hostIDs struct {
	uid, gid int
	spread   uint32 // number of ids from uid on that may be assigned; 0 means just the one
	next     *atomic.Uint32
}

// If Pawl runs as root every run gets its own user, so that no run can use up another's share of what the kernel accounts per user. The
// range lies above those that distributions, container managers and directory services assign.
const (
	firstHostID = 1_900_000_000
	hostIDCount = 1 << 16
)

func (h hostIDs) pick() (uid, gid int) {
	if h.spread == 0 {
		return h.uid, h.gid
	}
	n := int(h.next.Add(1) % h.spread)
	return h.uid + n, h.gid + n
}

// findHostIDs never returns the host's root unless root is the only id.
func findHostIDs(privileged bool) (hostIDs, error) {
	if !privileged {
		return hostIDs{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	next := new(atomic.Uint32)
	next.Store(uint32(os.Getpid()) << 6) // another Pawl starts elsewhere
	uids, err := idRanges("/proc/self/uid_map")
	if err != nil {
		return hostIDs{}, err
	}
	gids, err := idRanges("/proc/self/gid_map")
	if err != nil {
		return hostIDs{}, err
	}
	if uids.holds(firstHostID, hostIDCount) && gids.holds(firstHostID, hostIDCount) {
		return hostIDs{uid: firstHostID, gid: firstHostID, spread: hostIDCount, next: next}, nil
	}
	uid, gid := uids.last(), gids.last()
	if uid == 0 || gid == 0 {
		return hostIDs{}, fmt.Errorf("root has no unprivileged user id to give to programs (/proc/self/uid_map maps only 0); " +
			"run Pawl as an ordinary user, or map a range of ids")
	}
	return hostIDs{uid: uid, gid: gid}, nil
}

// ranges are the ids of this user namespace: first and count.
type ranges [][2]int

func idRanges(file string) (ranges, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("find the user ids that exist here: %w", err)
	}
	var rs ranges
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.Atoi(fields[0])
		count, err2 := strconv.Atoi(fields[2])
		if err1 == nil && err2 == nil {
			rs = append(rs, [2]int{first, count})
		}
	}
	return rs, nil
}

func (rs ranges) holds(first, count int) bool {
	return slices.ContainsFunc(rs, func(r [2]int) bool { return r[0] <= first && first+count <= r[0]+r[1] })
}

func (rs ranges) last() int {
	highest := 0
	for _, r := range rs {
		highest = max(highest, r[0]+r[1]-1)
	}
	return highest
}
