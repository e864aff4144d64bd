package instance

import (
	"bytes"
	"os"
	"strconv"
)

// oomScore is what the kernel adds to the share of memory that a process has, in thousandths, where it looks for one to kill. Programs in
// the sandbox have 1000.
const oomScore = -500

// PreferToKeep makes the kernel kill another process than this one when the machine has no memory left: what a program writes to a tmpfs
// counts for no process, and the kernel chose the server while the program that filled 1 TB went on. It needs root; a score that the
// operator has chosen stays.
func PreferToKeep() {
	const file = "/proc/self/oom_score_adj"
	if now, err := os.ReadFile(file); err == nil && bytes.Equal(bytes.TrimSpace(now), []byte("0")) {
		_ = os.WriteFile(file, []byte(strconv.Itoa(oomScore)), 0) // without the privilege it stays as it was
	}
}
