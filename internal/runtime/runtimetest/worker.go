//go:build unix

package runtimetest

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// workerToken is the environment variable that turns the test binary into the worker of WorkerKilled.
const workerToken = "PAWL_TEST_WORKER"

// WorkerKilled is row 48: SIGKILL ends a worker during a run, and no process of the run survives it; the next runtime
// removes the cgroups that it left. The worker process executes the calling test again, by its name.
func WorkerKilled(t *testing.T, factory Factory) {
	if token := os.Getenv(workerToken); token != "" {
		work(t, factory, token)
		return
	}
	if r := open(t, factory); r.Isolation() < runtime.Contained {
		t.Skipf("runtime %s does not contain grandchildren", r.Name())
	}
	token := rand.Text()
	// The worker must not be left if the test fails, so it gets its own time limit.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	worker := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	worker.Env = append(os.Environ(), workerToken+"="+token)
	stdout, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	said := ""
	for said != "running" && lines.Scan() {
		said = strings.TrimSpace(lines.Text())
	}
	children := childrenOf(worker.Process.Pid)
	if len(Processes(token)) == 0 || len(children) == 0 {
		t.Errorf("the worker runs nothing: it said %q and has the children %v", said, children)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // killed
	deadline := time.Now().Add(5 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for left := []string{"?"}; len(left) > 0; <-tick.C {
		left = Processes(token)
		for _, pid := range children {
			if alive(pid) {
				left = append(left, "child "+pid)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("survived the worker: %v", left)
		}
	}
	t.Logf("nothing was left after %v", time.Since(begin).Round(time.Millisecond))
	next := open(t, factory)
	if left := Cgroups(worker.Process.Pid); len(left) > 0 {
		t.Errorf("the next runtime has not swept up %v", left)
	}
	result, stdoutText, _ := finish(t, next, shell("echo next"))
	if result.Verdict != runtime.OK || stdoutText != "next\n" {
		t.Errorf("the next run: %+v", result)
	}
}

// work is the worker: it starts a family of processes and waits to be killed.
func work(t *testing.T, factory Factory, token string) {
	r := open(t, factory)
	out := newOutput()
	spec := shell(`sleep 1000 & (sleep 1000 &) ; echo ready; wait`, token)
	spec.Stdout = out
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	out.await(t, "ready\n")
	fmt.Println("running")
	run.Wait()
}

// alive is false for a zombie, too: an orphan waits for the system's init, which may take some time.
func alive(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// childrenOf lists the direct children of a process.
func childrenOf(pid int) []string {
	var all []string
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}
