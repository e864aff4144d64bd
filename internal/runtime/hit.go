package runtime

// The names of limits in Result.LimitsHit.
const (
	HitWall   = "wall"
	HitCPU    = "cpu"
	HitMemory = "memory"
	HitPids   = "pids"
	HitOutput = "output"
	HitDisk   = "disk"
)

// NoteLimits fills in LimitsHit once the verdict is known. pids means that the kernel has refused the run a process
// or thread because of its limit; disk, that the run was ended because of its files.
func (r *Result) NoteLimits(pids, disk bool) {
	r.LimitsHit = nil
	note := func(name string, met bool) {
		if met {
			r.LimitsHit = append(r.LimitsHit, name)
		}
	}
	note(HitWall, r.Verdict == Timeout)
	note(HitCPU, r.Verdict == CPUTimeout)
	note(HitMemory, r.Verdict == OOM || r.ChildOOM)
	note(HitPids, pids)
	note(HitOutput, r.Verdict == OutputLimit && !disk)
	note(HitDisk, disk)
}
