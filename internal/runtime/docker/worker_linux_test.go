package docker

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
)

// TestWorkerKilled is row 48 for docker: containers are the engine's children and outlive a worker that SIGKILL ends, until the next
// worker on the host starts. Their attempt belongs to another worker by then.
func TestWorkerKilled(t *testing.T) {
	const marker = "PAWL_TEST_DOCKER_WORKER"
	label := runtime.Labels{"execution": "ex_killed"}
	spec := runtime.Spec{Labels: label, Argv: []string{"sh", "-c", "echo ready; sleep 1000 & sleep 1000"}, Container: &runtime.Container{Image: testImage}}
	r := openRuntime(t, Options{})
	defer r.Close()
	if os.Getenv(marker) != "" {
		spec.Stdout = os.Stdout
		if started, err := r.Start(t.Context(), spec); err == nil {
			started.Wait()
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	worker := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "^TestWorkerKilled$")
	worker.Env = append(os.Environ(), marker+"=1")
	stdout, err := worker.StdoutPipe()
	if err == nil {
		err = programtest.Start(worker)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && strings.TrimSpace(lines.Text()) != "ready" {
	}
	host := dockertest.Engine(t)
	left := func() []string { return dockertest.Containers(t, host, labelPrefix+"execution=ex_killed") }
	if n, err := r.sweep(ctx); err != nil || len(left()) != 1 {
		t.Errorf("a living worker's container was swept up: %d, %v", n, err)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // killed
	next := openRuntime(t, Options{})
	defer next.Close()
	result, out := finish(t, next, runtime.Spec{Argv: []string{"echo", "next"}, Container: &runtime.Container{Image: testImage}})
	if result.Verdict != runtime.OK || out != "next\n" {
		t.Errorf("the next run: %q %+v", out, result)
	}
	if all := left(); len(all) > 0 {
		t.Errorf("the next worker has not swept up %s", fmt.Sprint(all))
	}
}
