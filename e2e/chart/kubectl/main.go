// Command kubectl is Kubernetes' own kubectl, for a test that runs the commands of docs/kubernetes.md as documented.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
