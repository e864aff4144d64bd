package instance

import (
	"slices"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/payload"
)

// leastMemory is what one program may always ask for, whatever the machine has: some tools that compile need it.
const leastMemory = 512_000_000

// ceilings are the most that one program may ask for by the settings, where auto stands for the given size; 0: for no ceiling.
func ceilings(c *config.Config, auto int64) payload.Ceilings {
	size := func(key string) int64 {
		if c.Text(key) == "auto" {
			return auto
		}
		return c.Size(key)
	}
	pids, _ := strconv.Atoi(c.Text("max_pids")) // checked when it was read
	return payload.Ceilings{Memory: size("max_memory"), Disk: size("max_disk"), Output: size("max_output"), Stack: size("max_stack"), Pids: pids,
		Interactive: c.Duration("max_interactive")}
}

// ceilingsHere are those of a worker: auto is a slot's share of this machine's memory, so that programs in all slots together cannot ask
// for more than there is. The memory of pods is that of other machines.
func ceilingsHere(c *config.Config) payload.Ceilings {
	all := machineMemory("/")
	if all == 0 || slices.Contains(c.List("runtime"), config.Kubernetes) {
		return ceilings(c, 0)
	}
	return ceilings(c, max(leastMemory, all/int64(c.Slots())))
}

// announceCeilings says what this machine has made of the settings that are auto: no one has set these numbers.
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
