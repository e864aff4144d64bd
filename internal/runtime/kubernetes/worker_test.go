//go:build unix

package kubernetes

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// TestWorkerKilled is row 48 for pods: a program outlives a worker that SIGKILL ends only for a limited time, and the next worker's sweep
// removes the pod.
func TestWorkerKilled(t *testing.T) {
	const marker, token = "PAWL_TEST_KUBERNETES_WORKER", "worker-killed-0815"
	if namespace := os.Getenv(marker); namespace != "" {
		r := openRuntime(t, Options{Namespace: namespace, OrphanAfter: 2 * time.Second})
		spec := shell(tools(t), "echo ready; while :; do sleep 1; done # "+token)
		spec.Stdout = os.Stdout
		if started, err := r.Start(t.Context(), spec); err == nil {
			started.Wait()
		}
		return
	}
	namespace := kubernetestest.Namespace(t)
	r := openRuntime(t, Options{Namespace: namespace})
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	worker := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "^TestWorkerKilled$")
	worker.Env = append(os.Environ(), marker+"="+namespace)
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
	left := func() []string { return kubernetestest.Pods(t, namespace, labelOwner) }
	if n, err := r.sweep(ctx, time.Now()); err != nil || n != 0 || len(left()) != 1 {
		t.Errorf("a living worker's pod was swept up: %d, %v", n, err)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // killed
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for len(runtimetest.Processes(token)) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("survived the worker: %v", runtimetest.Processes(token))
		}
	}
	for swept := 0; swept == 0; { // the kubelet reports the pod's end a little later
		if swept, err = r.sweep(ctx, time.Now().Add(2*sweepAfter)); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	if all := left(); len(all) > 0 {
		t.Errorf("the next worker has not swept up %v", all)
	}
	if result, out, _ := finish(t, r, runtime.Spec{Argv: []string{"next"}, Container: &runtime.Container{Image: tools(t), Entrypoint: []string{"echo"}}}); result.Verdict != runtime.OK || out != "next\n" {
		t.Errorf("the next run: %q %+v", out, result)
	}
}
