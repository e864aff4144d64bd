package docker

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// self identifies this process so that another on the same host can tell whether it is alive: the boot, the pid
// namespace, the process id and the start time.
func self() string {
	return fmt.Sprintf("%s/%d/%s", where(), os.Getpid(), began("self"))
}

// dead reports whether the process that self identified is certainly gone. It is never certain about processes of
// other hosts and other pid namespaces.
func dead(owner string) bool {
	host, rest, _ := strings.Cut(owner, "/")
	namespace, rest, _ := strings.Cut(rest, "/")
	pid, start, ok := strings.Cut(rest, "/")
	if _, err := strconv.Atoi(pid); !ok || err != nil || host+"/"+namespace != where() {
		return false
	}
	return began(pid) != start
}

// where identifies this boot of this host and the pid namespace; parts that /proc does not show are empty.
func where() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
}

// began is the start time of a process, in ticks since the boot; empty: there is no such process.
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
