// Command kubectl is Kubernetes' own, for the commands of docs/kubernetes.md, which a test runs as they stand there.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
