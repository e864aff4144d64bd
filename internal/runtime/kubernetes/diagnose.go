package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// probeWithin bounds Diagnose's test pod: the helper's image may have to be pulled.
const probeWithin = time.Minute

// Diagnose asks the API server and runs a pod of the helper's image in the way that runs do. The pod also tries to reach an address
// that the namespace's network policies must forbid.
func (r *Runtime) Diagnose(ctx context.Context) []runtime.Finding {
	cluster := runtime.Finding{What: "cluster", OK: true, Say: r.config.Host + ", namespace " + r.options.Namespace}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := r.pods.list(asking, metav1.ListOptions{LabelSelector: labelOwner, Limit: 1}); err != nil {
		return []runtime.Finding{failed(cluster, r.refused("list pods in namespace "+r.options.Namespace, err))}
	}
	limits := runtime.Finding{What: "limits", OK: true,
		Say: "memory by the node's cgroups; time, processes, output and disk by the helper in each pod (" + r.options.HelperImage + ")"}
	pods, policies := r.probe(ctx)
	if !pods.OK { // without it nothing can run
		return []runtime.Finding{pods, cluster, limits, policies}
	}
	return []runtime.Finding{cluster, pods, limits, policies}
}

// failed turns f into a failed finding with the remedy that the error ends with.
func failed(f runtime.Finding, err error) runtime.Finding {
	f.OK, f.Say, f.Fix = false, err.Error(), "see docs/kubernetes.md for what a worker needs"
	if i := strings.LastIndex(f.Say, "; "); i >= 0 {
		f.Say, f.Fix = f.Say[:i], f.Say[i+2:]
	}
	return f
}

// probe runs the helper as a program in a pod.
func (r *Runtime) probe(ctx context.Context) (pods, policies runtime.Finding) {
	pods = runtime.Finding{What: "pods and exec", OK: true}
	policies = runtime.Finding{What: "network policies", OK: true, Say: "not tried: outside of the cluster no address within is known"}
	address := ""
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		address = net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT"))
	}
	var out bytes.Buffer
	n := newRun(r, runtime.Spec{Name: "doctor", Argv: []string{wire.Image, "reach", address}, Env: []string{},
		Container: &runtime.Container{Image: r.options.HelperImage, Entrypoint: []string{}}, Stdout: &out,
		Limits: runtime.Limits{Wall: 30 * time.Second}.Or(r.options.Defaults)})
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	err := n.plan(ctx)
	if err == nil {
		n.command.Network = true // this tests the policies, not the filter
		_, err = r.begin(n, func() error { return n.start(ctx) })
	}
	took := time.Since(begin)
	if err != nil {
		return failed(pods, err), policies
	}
	result := n.Wait()
	if result.Verdict != runtime.OK {
		return failed(pods, fmt.Errorf("a pod was started and ended with %s: %s", result.Verdict, result.Reason)), policies
	}
	pods.Say = fmt.Sprintf("a pod's program was started within %v, over an exec", took.Round(time.Millisecond))
	switch said := strings.TrimSpace(out.String()); {
	case address == "":
	case said == "reached":
		policies = runtime.Finding{What: policies.What, Say: "the cluster does not hold pods to network policies: one that may reach nothing reaches " + address +
			"; a task without a network has none all the same, and one with a network reaches all that the pod does", Fix: "use a network plugin that enforces them, such as Cilium or Calico, or offer no networks"}
	default:
		policies.Say = "a pod that may reach nothing does not reach " + address + " (" + said + ")"
	}
	return pods, policies
}
