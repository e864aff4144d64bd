package docker

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// self names this process so that another one on the same host can tell whether it still lives: the boot, the pid
// namespace, the process id and when the process began.
func self() string {
	return fmt.Sprintf("%s/%d/%s", where(), os.Getpid(), began("self"))
}

// dead reports whether a process that named itself is certainly no more. Of other hosts and of other pid namespaces
// nothing is certain.
func dead(owner string) bool {
	host, rest, _ := strings.Cut(owner, "/")
	namespace, rest, _ := strings.Cut(rest, "/")
	pid, start, ok := strings.Cut(rest, "/")
	if _, err := strconv.Atoi(pid); !ok || err != nil || host+"/"+namespace != where() {
		return false
	}
	return began(pid) != start
}

// where is this boot of this host and the pid namespace; empty parts mean that /proc does not say.
func where() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
}

// began is when a process began, in ticks since the boot; empty: there is none.
func began(pid string) string {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	// After the command in parentheses: state is field 3, the start is field 22.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
