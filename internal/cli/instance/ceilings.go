package instance

import (
	"slices"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/payload"
)

// leastMemory is the memory that one program may always ask for, on any machine: some compilers need it.
const leastMemory = 512_000_000

// ceilings are the limits of the settings on what one program may ask for; auto is the size that "auto" stands for; 0: no limit.
func ceilings(c *config.Config, auto int64) payload.Ceilings {
	size := func(key string) int64 {
		if c.Text(key) == "auto" {
			return auto
		}
		return c.Size(key)
	}
	pids, _ := strconv.Atoi(c.Text("max_pids")) // checked by config.Load
	return payload.Ceilings{Memory: size("max_memory"), Disk: size("max_disk"), Output: size("max_output"), Stack: size("max_stack"), Pids: pids,
		Interactive: c.Duration("max_interactive")}
}

// ceilingsHere are the limits of a worker: auto is a slot's share of this machine's memory, so that programs in all slots together
// cannot ask for more than there is. Pods use the memory of other machines.
func ceilingsHere(c *config.Config) payload.Ceilings {
	all := machineMemory("/")
	if all == 0 || slices.Contains(c.List("runtime"), config.Kubernetes) {
		return ceilings(c, 0)
	}
	return ceilings(c, max(leastMemory, all/int64(c.Slots())))
}

// announceCeilings prints the values of automatic settings on this machine, which no user has set.
func announceCeilings(c *config.Config, say func(string, ...any)) {
	most, whole := ceilingsHere(c), int64(1e6)
	for _, auto := range []struct {
		setting, of string
		bytes       int64
	}{{"max_memory", "memory", most.Memory}, {"max_disk", "disk", most.Disk}} {
		if auto.bytes > 0 && c.Text(auto.setting) == "auto" {
			say("pawl: one program may ask for up to %s of %s, by the memory of this machine and %d slots: %s says otherwise",
				api.Size(auto.bytes/whole*whole), auto.of, c.Slots(), auto.setting)
		}
	}
}
