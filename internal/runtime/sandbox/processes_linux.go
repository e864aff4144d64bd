package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of times in /proc: USER_HZ is 100 on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// look is one reading of the processes of a sandbox.
type look struct {
	cpu     time.Duration
	memory  int64
	largest int // pid of the process with the most memory; 0 when memory is within the limit
}

// lookAt adds up the usage of the descendants of a sandbox's init. Reading a changing tree is inexact, but no process can leave it:
// orphans become children of the init. It first counts memory cheaply, with shared pages once per mapping; only when that is over limit
// does it divide shared pages among their processes, which costs a walk of the page tables.
func lookAt(init int, limit int64) look {
	var l look
	tree := descendants(init)
	for _, pid := range tree {
		l.cpu += cpuOf(pid, true)
		l.memory += residentOf(pid)
	}
	l.cpu += cpuOf(init, false) // the children that the init has reaped
	if l.memory <= limit {
		return l
	}
	var most int64
	l.memory = 0
	for _, pid := range tree {
		share, ok := shareOf(pid)
		if !ok {
			share = residentOf(pid)
		}
		l.memory += share
		if share > most {
			most, l.largest = share, pid
		}
	}
	return l
}

// signalInside sends a signal to those of pids that are descendants of the sandbox's init, and counts them; by now a pid may belong to an
// unrelated process. It opens the pidfds first: if the process of a pidfd is still alive when the tree has been read, the pid in the tree
// is that process's.
func signalInside(init int, pids []int, signal unix.Signal) (sent int) {
	handles := make(map[int]int, len(pids))
	for _, pid := range pids {
		if handle, err := unix.PidfdOpen(pid, 0); err == nil {
			defer unix.Close(handle)
			handles[pid] = handle
		}
	}
	for _, pid := range descendants(init) {
		if handle, ours := handles[pid]; ours && unix.PidfdSendSignal(handle, signal, nil, 0) == nil {
			sent++
		}
	}
	return sent
}

// descendants lists the processes below root.
func descendants(root int) []int {
	var all []int
	queue := []int{root}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		dir := "/proc/" + strconv.Itoa(pid) + "/task"
		threads, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, thread := range threads {
			text, err := os.ReadFile(dir + "/" + thread.Name() + "/children")
			if err != nil {
				continue
			}
			for child := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(child); err == nil {
					all = append(all, pid)
					queue = append(queue, pid)
				}
			}
		}
	}
	return all
}

// cpuOf is the user and system time of a process's reaped children and, if asked for, its own.
func cpuOf(pid int, own bool) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0
	}
	first := 13 // cutime and cstime are fields 16 and 17 of the line, utime and stime 14 and 15
	if own {
		first = 11
	}
	var ticks int64
	for _, field := range fields[first:15] {
		n, _ := strconv.ParseInt(string(field), 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

// residentOf is the anonymous and shared memory of a process; pages of files do not count.
func residentOf(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	return kilobytes(text, "RssAnon:") + kilobytes(text, "RssShmem:") + overhead(text)
}

// overhead is the part of a process's memory that residentOf does not include: swap and page tables.
func overhead(status []byte) int64 { return kilobytes(status, "VmSwap:") + kilobytes(status, "VmPTE:") }

// shareOf is the same with each shared page divided among the processes that share it.
func shareOf(pid int) (int64, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil || len(text) == 0 {
		return 0, false
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, false
	}
	return kilobytes(text, "Pss_Anon:") + kilobytes(text, "Pss_Shmem:") + overhead(status), true
}

// kilobytes finds a "Key:  n kB" line and returns n in bytes.
func kilobytes(text []byte, key string) int64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			fields := bytes.Fields(rest)
			if len(fields) > 0 {
				n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
				return n << 10
			}
		}
	}
	return 0
}
