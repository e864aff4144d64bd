package kubernetes

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Diagnose asks the API server, as runs do. It starts nothing: that takes an image.
func (r *Runtime) Diagnose(ctx context.Context) []runtime.Finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cluster := runtime.Finding{What: "cluster", OK: true, Say: r.config.Host + ", namespace " + r.options.Namespace}
	if _, err := r.pods.list(ctx, metav1.ListOptions{LabelSelector: labelOwner, Limit: 1}); err != nil {
		err = r.refused("list pods in namespace "+r.options.Namespace, err)
		cluster.OK, cluster.Say, cluster.Fix = false, err.Error(), "see docs/kubernetes.md for what a worker needs"
		if i := strings.LastIndex(cluster.Say, "; "); i >= 0 {
			cluster.Say, cluster.Fix = cluster.Say[:i], cluster.Say[i+2:]
		}
		return []runtime.Finding{cluster}
	}
	limits := runtime.Finding{What: "limits", OK: true,
		Say: "memory by the node's cgroups; time, processes, output and disk by the helper in each pod (" + r.options.HelperImage + ")"}
	return []runtime.Finding{cluster, limits}
}
