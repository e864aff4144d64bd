package instance

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// machineMemory is how many bytes of memory this process can have, from the files beneath root: those of the machine, or fewer where a
// cgroup above it has a limit, as a container's; 0: it is not known.
func machineMemory(root string) int64 {
	most := int64(0)
	info, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(info)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "MemTotal:" {
			kilobytes, _ := strconv.ParseInt(f[1], 10, 64) // 0 is not known
			most = kilobytes << 10
		}
	}
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup")) // without cgroups there is no limit
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		var tree, file string
		switch {
		case f[1] == "": // version 2, whose line is "0::/path"
			tree, file = "sys/fs/cgroup", "memory.max"
		case f[1] == "memory":
			tree, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// A container sees its own group as the root of the tree, though the path may be that of its host.
		for group := f[2]; ; group = filepath.Dir(group) {
			text, _ := os.ReadFile(filepath.Join(root, tree, group, file)) // "max", or no file: no limit
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit < most {
				most = limit
			}
			if group == "/" || group == "." {
				break
			}
		}
	}
	return most
}
