package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// over reports whether no program of a pod can run any more.
func over(pod *v1.Pod) bool {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed && pod.Status.Reason != "NodeLost" {
		return true
	}
	main := statusOf(pod, mainName)
	return main != nil && main.State.Terminated != nil
}

// containerOf is one of the pod's two containers.
func containerOf(pod *v1.Pod, name string) *v1.Container {
	return &pod.Spec.Containers[slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == name })]
}

func statusOf(pod *v1.Pod, name string) *v1.ContainerStatus {
	for _, all := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		if i := slices.IndexFunc(all, func(s v1.ContainerStatus) bool { return s.Name == name }); i >= 0 {
			return &all[i]
		}
	}
	return nil
}

// hopeless reads from a pod's status why it cannot start.
func hopeless(pod *v1.Pod) error {
	if pod == nil {
		return nil
	}
	for _, s := range containers(pod) {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError":
		default:
			continue
		}
		return fmt.Errorf("%w: kubernetes: container %s of pod %s, image %s: %s: %s", runtime.ErrSpec, s.Name, pod.Name, s.Image, w.Reason, w.Message)
	}
	if main := statusOf(pod, mainName); main != nil && main.State.Terminated != nil && main.State.Terminated.Reason == "StartError" {
		if said := main.State.Terminated.Message; strings.Contains(said, wire.Program) && strings.Contains(said, "no such file") {
			return fmt.Errorf("%w: kubernetes: %w: %s", runtime.ErrUnavailable, errKeeperless, keeperless(pod))
		}
		return fmt.Errorf("%w: kubernetes: image %s: StartError: %s", runtime.ErrSpec, main.Image, main.State.Terminated.Message)
	}
	// A pod can also end without an error: its keeper releases process 1 when no worker has reached it in time.
	if pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodFailed || over(pod) {
		err := fmt.Errorf("%w: kubernetes: pod %s ended before its program began: %s", runtime.ErrUnavailable, pod.Name, ending(pod))
		if cause := causeOf(pod); cause != "" {
			return &runtime.TakenError{Cause: cause, Err: err}
		}
		return err
	}
	return nil
}

// errKeeperless is the end of a pod whose program's container started although its keeper did not: after a container that fails, the
// kubelet goes on to the next, and restarts neither.
var errKeeperless = errors.New("the pod's keeper did not start")

func keeperless(pod *v1.Pod) string {
	if said := unpulled(pod); said != "" {
		return said
	}
	if s := statusOf(pod, keeperName); s != nil {
		switch w, t := s.State.Waiting, s.State.Terminated; {
		case w != nil:
			return fmt.Sprintf("%s: %s", w.Reason, w.Message)
		case t != nil:
			return fmt.Sprintf("it ended with code %d (%s) %s", t.ExitCode, t.Reason, t.Message)
		}
	}
	return "the cluster does not say why"
}

// unpulled describes the image that a node has failed to pull, in the registry's words; empty: there is none.
func unpulled(pod *v1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, s := range containers(pod) {
		if w := s.State.Waiting; w != nil && (w.Reason == "ErrImagePull" || w.Reason == "ImagePullBackOff") {
			return fmt.Sprintf("node %s cannot pull image %s: %s; check the image's name, and the pull secrets of the namespace", pod.Spec.NodeName, s.Image, w.Message)
		}
	}
	return ""
}

func containers(pod *v1.Pod) []v1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// waitsFor describes what a pod that has not started waits for; empty: the cluster reports nothing.
func waitsFor(pod *v1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return fmt.Sprintf("%s: %s; lower limits.memory or limits.cpus, add nodes, or change the template", c.Reason, c.Message)
		}
	}
	if said := unpulled(pod); said != "" {
		return said
	}
	for _, s := range containers(pod) {
		if w := s.State.Waiting; w != nil && w.Message != "" {
			return fmt.Sprintf("container %s on node %s: %s: %s", s.Name, pod.Spec.NodeName, w.Reason, w.Message)
		}
	}
	return ""
}

// causeOf is the reason for which the cluster removed a pod; empty: it did not.
func causeOf(pod *v1.Pod) runtime.Cause {
	if pod == nil {
		return runtime.Deleted
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != v1.DisruptionTarget || c.Status != v1.ConditionTrue {
			continue
		}
		switch c.Reason {
		case v1.PodReasonPreemptionByScheduler:
			return runtime.Preempted
		case "DeletionByTaintManager", "DeletionByPodGC":
			return runtime.NodeLost
		case "EvictionByEvictionAPI":
			return runtime.Evicted
		case v1.PodReasonTerminationByKubelet:
			if strings.Contains(pod.Status.Message, "shut") {
				return runtime.NodeShutdown
			}
			return runtime.Evicted
		}
	}
	switch pod.Status.Reason {
	case "Evicted":
		return runtime.Evicted
	case "Preempting":
		return runtime.Preempted
	case "NodeLost":
		return runtime.NodeLost
	case "NodeShutdown", "Shutdown", "Terminated":
		return runtime.NodeShutdown
	}
	if pod.DeletionTimestamp != nil {
		return runtime.Deleted
	}
	return ""
}

// ending describes, for people, the end of a pod in the cluster's words.
func ending(pod *v1.Pod) string {
	var said []string
	add := func(text string) {
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	add(pod.Status.Reason)
	add(pod.Status.Message)
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue {
			add(c.Reason + ": " + c.Message)
		}
	}
	for _, name := range []string{mainName, keeperName} {
		if s := statusOf(pod, name); s != nil && s.State.Terminated != nil {
			t := s.State.Terminated
			add(strings.TrimSpace(fmt.Sprintf("container %s ended with code %d (%s) %s", name, t.ExitCode, t.Reason, t.Message)))
		}
	}
	if pod.DeletionTimestamp != nil {
		add("the pod was deleted by another")
	}
	if len(said) == 0 {
		return "the cluster does not say why"
	}
	return strings.Join(said, "; ")
}
