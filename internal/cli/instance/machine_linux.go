package instance

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// machineMemory is the memory in bytes that this process can use, from the files beneath root: that of the machine, or less if a
// cgroup of this process, such as a container's, has a lower limit; 0: unknown.
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
		// A container sees its own group as the root of the tree, but the path may be the one on its host.
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
