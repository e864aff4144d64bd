package instance

import (
	"bytes"
	"os"
	"strconv"
)

// oomScore is added, in thousandths of the memory, to this process's share when the kernel looks for a process to kill. Programs in the
// sandbox have 1000.
const oomScore = -500

// PreferToKeep makes the kernel kill another process than this one when the machine runs out of memory: files on a tmpfs count for no
// process, and the kernel killed the server while the program that filled 1 TB kept running. It needs root, and keeps a score that the
// operator has set.
func PreferToKeep() {
	const file = "/proc/self/oom_score_adj"
	if now, err := os.ReadFile(file); err == nil && bytes.Equal(bytes.TrimSpace(now), []byte("0")) {
		_ = os.WriteFile(file, []byte(strconv.Itoa(oomScore)), 0) // without the privilege the score does not change
	}
}
