package programtest

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startsForever names the environment variable that makes this test binary start a process and wait for it.
const startsForever = "PROGRAMTEST_STARTS_FOREVER"

// A process that the test binary has started ends when the binary is killed.
func TestStartEndsWithItsParent(t *testing.T) {
	if os.Getenv(startsForever) != "" {
		cmd := exec.Command("sleep", "3600")
		if err := Start(cmd); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("pid " + strconv.Itoa(cmd.Process.Pid) + "\n")
		_ = cmd.Wait()
		return
	}
	t.Parallel()
	parent := exec.Command("/proc/self/exe", "-test.run", "^TestStartEndsWithItsParent$")
	parent.Env = append(os.Environ(), startsForever+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(parent); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	child := 0
	for child == 0 && lines.Scan() {
		if pid, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			child, _ = strconv.Atoi(pid)
		}
	}
	if child == 0 || syscall.Kill(child, 0) != nil {
		t.Fatalf("the child, process %d, does not run", child)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for deadline := time.Now().Add(time.Minute); running(child); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d runs although the process that started it was killed", child)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// running reports whether a process exists and is not a zombie, which the init of a container may never reap.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
