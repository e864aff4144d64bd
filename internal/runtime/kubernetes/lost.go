package kubernetes

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/pawl-run/pawl/internal/runtime"
)

// giveUp is how long a pod may be unreachable before the worker gives up the run: as long as its program may still run.
func (r *Runtime) giveUp() time.Duration { return r.options.OrphanAfter + orphanSlack }

// taken is the error of a run whose pod was removed by the cluster or by a user.
func (n *run) taken(pod *v1.Pod, how string) error {
	n.result.Cause = causeOf(pod)
	return fmt.Errorf("%w: pod %s %s: %s", errInfra, n.name, how, describe(pod))
}

// overdue reports whether a pod is being deleted and no kubelet will finish it: its node is lost, or its grace period is long past.
func overdue(pod *v1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp == nil {
		return false
	}
	return causeOf(pod) == runtime.NodeLost || time.Since(pod.DeletionTimestamp.Time) > settleWithin
}

// quietly describes, from what the cluster knows, a pod that does not answer.
func quietly(name string, pod *v1.Pod, since time.Time) string {
	node, says := "", ""
	if pod != nil {
		node = " on node " + pod.Spec.NodeName
		for _, c := range pod.Status.Conditions {
			if c.Type == v1.PodReady && c.Status == v1.ConditionFalse && c.Reason != "" {
				says = "; the cluster says of it: " + c.Reason
			}
		}
	}
	return fmt.Sprintf("pod %s%s has not answered since %s%s", name, node, since.UTC().Format("15:04:05Z"), says)
}

func describe(pod *v1.Pod) string {
	if pod == nil {
		return "it was deleted"
	}
	return ending(pod)
}

// errOOM reports that the kernel killed process 1 because memory ran out: it then kills the whole container at once.
var errOOM = errors.New("out of memory")

// lost finds out why process 1 of a pod died without a report. All output has arrived by then.
func (n *run) lost() error {
	deadline := time.After(settleWithin)
	for {
		pod, gone, changed := n.runtime.watcher.look(n.name)
		if pod != nil {
			if s := statusOf(pod, mainName); s != nil && s.State.Terminated != nil {
				if s.State.Terminated.Reason == "OOMKilled" && !nodesDoing(causeOf(pod)) {
					return errOOM
				}
				gone = true
			}
		}
		if gone {
			return n.taken(pod, "was lost while its program ran")
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("%w: pod %s was lost while its program ran, and the cluster does not say how", errInfra, n.name)
		}
	}
}

// nodesDoing reports whether the cluster removed a pod because of its node: a memory kill is then attributed to the node, too.
func nodesDoing(c runtime.Cause) bool { return c != "" && c != runtime.Deleted }

// settleWithin is how long the cluster may take to report how a container ended; kubelets take one or two seconds.
const settleWithin = 20 * time.Second

// abandon deletes an unreachable pod and waits for the kubelet to confirm its end.
func (n *run) abandon(why error) error {
	_ = n.delete()
	n.result.Cause = runtime.NodeLost
	deadline := time.After(settleWithin)
	for {
		pod, gone, changed := n.runtime.watcher.look(n.name)
		if gone || pod != nil && over(pod) {
			return fmt.Errorf("%w: pod %s could not be reached for %v and was deleted: %w", errInfra, n.name, n.runtime.giveUp(), why)
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("%w: pod %s could not be reached for %v: %w", errInfra, n.name, n.runtime.giveUp(), why)
		}
	}
}
