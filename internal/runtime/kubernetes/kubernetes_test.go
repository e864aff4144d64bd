//go:build unix

package kubernetes

import (
	"bytes"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// tools is an image with some programs of this host, without parts of Pawl.
func tools(t testing.TB) string {
	t.Helper()
	layer, err := dockertest.Rootfs()
	if err != nil {
		t.Fatal(err)
	}
	return kubernetestest.Image(t, "pawl-test/tools", layer, nil)
}

// openRuntime opens a runtime in its own namespace.
func openRuntime(t testing.TB, o Options) *Runtime {
	t.Helper()
	o.Kubeconfig = kubernetestest.Cluster(t)
	if o.Namespace == "" {
		o.Namespace = kubernetestest.Namespace(t)
	}
	if o.HelperImage == "" {
		o.HelperImage = kubernetestest.Helper(t)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func finish(t testing.TB, r runtime.Runtime, spec runtime.Spec) (result runtime.Result, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	spec.Stdout, spec.Stderr = &out, &errs
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	result = started.Wait()
	return result, out.String(), errs.String()
}

const (
	mounts = "a pod may run on any node: nothing of the worker's host can be mounted in it"
	disk   = "the working directory and /tmp are volumes of the node, which have no limit that writes would meet: what they hold is watched and ends the run, and one file beyond the limit ends its writer"
	masks  = "container runtimes choose what they mask in /proc and /sys, and a pod cannot ask for more"
	sysfs  = "the container runtime mounts /sys and a /dev of its own, read-only or empty, because programs look for their limits there"
)

// differs lists how pods differ.
var differs = runtimetest.Differs{
	"Behaviour/mounts":                     mounts,
	"06":                                   disk,
	"15":                                   disk,
	"44":                                   disk,
	"38":                                   mounts,
	"39":                                   mounts,
	"23/open /sys":                         sysfs,
	"23/see /dev/tty":                      sysfs,
	"23/open /dev/ptmx":                    sysfs,
	"24":                                   "the container runtime adds HOME",
	"28/write /proc/pressure/memory":       masks,
	"29/read /proc/key-users":              masks,
	"29/read /proc/kallsyms":               masks,
	"29/read /sys/kernel/notes":            masks,
	"30/open /etc/resolv.conf of the host": "the kubelet puts a file of its own there",
	"32/list /proc/net/unix":               "it is the pod's own network namespace, where the keeper has a socket in a directory that only it sees",
	"36/see its cgroup's path":             "with version 1 of cgroups container runtimes give a pod no namespace of them",
}

func TestConformance(t *testing.T) {
	kubernetestest.Cluster(t)
	image, namespace := tools(t), kubernetestest.Namespace(t)
	factory := func(t testing.TB) runtime.Runtime { return openRuntime(t, Options{Image: image, Namespace: namespace}) }
	// A pod is deleted after its run's end has been reported.
	left := func(t testing.TB) (pods []string) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for begin := time.Now(); time.Since(begin) < 10*time.Second; <-tick.C {
			if pods = kubernetestest.Pods(t, namespace, labelOwner); len(pods) == 0 {
				break
			}
		}
		return pods
	}
	runtimetest.Exercise(t, factory, runtimetest.Races(20), runtimetest.Differing(differs), runtimetest.Left(left))
}
