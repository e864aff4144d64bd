// Command pawl-kubernetes is pawl with an additional runtime, kubernetes, whose workers run containers and code as pods. It
// is a separate command because the cluster's client library makes a program half as large again.
package main

import (
	"os"

	"github.com/pawl-run/pawl/internal/cli"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/heap"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes"
)

func main() {
	heap.Grow()
	instance.Link(kubernetes.Name, open)
	os.Exit(cli.Main(os.Args[1:]))
}

func open(c *config.Config, worker string) (runtime.Runtime, error) {
	return kubernetes.New(kubernetes.Options{
		Kubeconfig: c.Text("kubernetes_config"), Namespace: c.Text("kubernetes_namespace"), HelperImage: c.Text("kubernetes_helper_image"),
		Image: c.Text("kubernetes_image"), Networks: c.List("kubernetes_networks"), Pull: runtime.Pull(c.Text("kubernetes_pull")),
		RuntimeClass: c.Text("kubernetes_runtime_class"), OrphanAfter: c.Duration("kubernetes_orphan_after"), Worker: worker,
		Template: c.Text("kubernetes_template"), Logins: c.Text("kubernetes_registry_logins"),
	})
}
