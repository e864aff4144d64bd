package kubernetes

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// sweepEvery is the interval between searches for orphans.
	sweepEvery = 30 * time.Second
	// sweepAfter is how long a pod of another worker must have been over before that worker is assumed dead: a living worker
	// deletes its pods at once.
	sweepAfter = time.Minute
)

// sweepAgain searches for orphans until ctx ends. It reports no error: the next run reports a cluster that does not answer.
func (r *Runtime) sweepAgain(ctx context.Context) {
	tick := time.Tick(sweepEvery)
	for {
		_, _ = r.sweep(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// sweep deletes the pods of dead workers: such a pod ends by itself, because its keeper waits for a worker only for a limited time, and
// is then deleted here. Of the pods of this worker's earlier processes it deletes those that are not taken up, and of this process those
// that are over and could not be deleted when their run ended. It returns the number of deleted pods.
func (r *Runtime) sweep(ctx context.Context, now time.Time) (int, error) {
	deleted := 0
	for _, which := range []metav1.ListOptions{
		{LabelSelector: labelOwner + "," + labelLife + "!=" + r.life},
		{LabelSelector: labelLife + "=" + r.life, FieldSelector: "status.phase!=Pending,status.phase!=Running"},
	} {
		call, cancel := context.WithTimeout(ctx, callWithin)
		found, err := r.pods.list(call, which)
		cancel()
		if err != nil {
			return deleted, fmt.Errorf("list pods: %w", err)
		}
		for i := range found.Items {
			if pod := &found.Items[i]; pod.DeletionTimestamp == nil && r.unneeded(pod, now) && r.sweepUp(ctx, pod) == nil {
				deleted++
			}
		}
	}
	return deleted, nil
}

// unneeded reports whether no run needs a pod now or later.
func (r *Runtime) unneeded(pod *v1.Pod, now time.Time) bool {
	switch {
	case pod.Labels[labelLife] == r.life:
		return over(pod) && !r.watcher.follows(pod.Name)
	case pod.Labels[labelOwner] == r.owner:
		return r.disowned(pod, now)
	}
	return orphaned(pod, now)
}

func (r *Runtime) sweepUp(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return r.remove(ctx, pod.Name, pod.UID)
}

// orphaned reports whether a pod is over and was not deleted, or has outlived its limits.
func orphaned(pod *v1.Pod, now time.Time) bool {
	if expires, err := strconv.ParseInt(pod.Annotations[annotationExpires], 10, 64); err == nil && now.Unix() > expires {
		return true
	}
	if !over(pod) {
		return false
	}
	ended := pod.CreationTimestamp.Time
	if s := statusOf(pod, mainName); s != nil && s.State.Terminated != nil {
		ended = s.State.Terminated.FinishedAt.Time
	}
	return now.Sub(ended) > sweepAfter
}
