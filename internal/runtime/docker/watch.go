package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

// reading is a container's usage so far.
type reading struct {
	cpu      time.Duration
	peak     int64 // bytes
	oomKills int64
	hostFull bool // the kernel killed although the container's own limit was not reached
}

// usage follows a container's usage: through its cgroup where the engine runs on this host, else by asking the engine. It
// is safe for concurrent use.
type usage struct {
	runtime *Runtime
	id      string
	limit   int64 // of memory

	mu     sync.Mutex
	cgroup *cgroup
	most   reading
	closed bool
}

func newUsage(r *Runtime, id string, limit int64) *usage {
	return &usage{runtime: r, id: id, limit: limit}
}

// look takes a reading from the cgroup, which costs a few microseconds, and reports whether there is a cgroup.
func (u *usage) look() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cgroup == nil && !u.closed {
		u.cgroup = findCgroup(u.id)
	}
	if u.cgroup == nil {
		return false
	}
	u.note(u.cgroup.read(u.limit))
	return true
}

// ask takes a reading from the engine.
func (u *usage) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	answer, err := u.runtime.engine.ContainerStats(ctx, u.id, client.ContainerStatsOptions{})
	if err != nil {
		return // it may have ended; the wait reports an engine that is gone
	}
	defer answer.Body.Close()
	var stats container.StatsResponse
	if json.NewDecoder(answer.Body).Decode(&stats) != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.note(reading{
		cpu:      time.Duration(stats.CPUStats.CPUUsage.TotalUsage),
		peak:     int64(max(stats.MemoryStats.MaxUsage, stats.MemoryStats.Usage)),
		oomKills: int64(stats.MemoryStats.Stats["oom_kill"]),
	})
}

func (u *usage) note(r reading) {
	u.most.cpu = max(u.most.cpu, r.cpu)
	u.most.peak = max(u.most.peak, r.peak)
	u.most.oomKills = max(u.most.oomKills, r.oomKills)
	if r.oomKills > 0 { // the latest reading counts: the limit may have been reached after a kill for the machine
		u.most.hostFull = r.hostFull
	}
}

func (u *usage) last() reading {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.most
}

// close takes the last reading when the program has ended; there must be no reading afterwards.
func (u *usage) close() reading {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.cgroup; c != nil && !u.closed && c.last() {
		u.most.oomKills = max(u.most.oomKills, 1)
	}
	u.closed = true
	return u.most
}

const (
	closestLook  = 5 * time.Millisecond
	farthestLook = 20 * time.Millisecond
	askEvery     = time.Second // an engine takes a while to answer
	diskEvery    = 200 * time.Millisecond
)

// watch enforces what the engine does not: the CPU limit, and the size of the working directory where it can be seen
// from here. The returned function stops it and waits for its end.
func (n *run) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { n.watchCPU(ctx) })
	all.Go(func() { n.watchDisk(ctx) })
	return func() { cancel(); all.Wait() }
}

func (n *run) watchCPU(ctx context.Context) {
	timer := time.NewTimer(closestLook)
	defer timer.Stop()
	for begin := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-n.endedAt:
			return
		case <-timer.C:
		}
		local := n.usage.look()
		if !local && time.Since(begin) < askEvery { // the engine may still be starting the container
			timer.Reset(closestLook)
			continue
		}
		if !local {
			n.usage.ask(ctx)
		}
		seen := n.usage.last()
		if seen.cpu > n.spec.Limits.EndCPU() {
			n.end(verdict.CPU(n.spec.Limits))
			return
		}
		next := min(max((n.spec.Limits.EndCPU()-seen.cpu)/4, closestLook), farthestLook)
		if !local {
			next = askEvery
		}
		timer.Reset(next)
	}
}

// watchDisk ends a run whose working directory exceeds the disk limit twice in a row: what a program leaves while it
// ends, or deletes at once, is not a reason to kill it. A scan takes time in proportion to the number of files, so a
// longer scan is followed by a longer pause.
func (n *run) watchDisk(ctx context.Context) {
	timer := time.NewTimer(diskEvery)
	defer timer.Stop()
	for over := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-n.endedAt:
			return
		case <-timer.C:
		}
		dir := n.volume()
		if dir == "" {
			return
		}
		begin := time.Now()
		before := over
		if over = sizeOf(ctx, dir, n.spec.Limits.Disk) > n.spec.Limits.Disk; over && before {
			n.overDisk.Store(true)
			n.end(verdict.Ending{Verdict: runtime.OutputLimit, Reason: fmt.Sprintf("the working directory holds more than the disk limit of %d bytes", n.spec.Limits.Disk)})
			return
		}
		timer.Reset(max(diskEvery, 20*time.Since(begin)))
	}
}
