// Command kubeall is a whole Kubernetes in one program, for tests: its first argument names the component to run.
//
// It is a module of its own, because k8s.io/kubernetes needs a replace for each of its libraries, which must not reach the
// product's module. scripts/services builds it and keeps the program in the cache of the user.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	if len(os.Args) < 2 {
		fail()
	}
	component := os.Args[1]
	os.Args = append([]string{component}, os.Args[2:]...)
	var command *cobra.Command
	switch component {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = manager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubelet":
		command = kubelet.NewKubeletCommand(context.Background())
	default:
		fail()
	}
	os.Exit(cli.Run(command))
}

func fail() {
	fmt.Fprintln(os.Stderr, "usage: kubeall etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet [flags]")
	os.Exit(2)
}
