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
	// sweepEvery is how often orphans are looked for.
	sweepEvery = 30 * time.Second
	// sweepAfter is how long a pod of another worker has been over before it is taken for one whose worker is dead: a living one
	// deletes its pods at once.
	sweepAfter = time.Minute
)

// sweepAgain looks for orphans until ctx ends. It says nothing: what matters of a cluster that does not answer, the next run
// says.
func (r *Runtime) sweepAgain(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		_, _ = r.sweep(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep deletes the pods of workers that are no more: a pod whose worker has died ends by itself, since its keeper
// waits for one only so long, and is then deleted here. Of this worker's earlier lives it deletes what is not taken up,
// and of this one what is over and could not be deleted when its run ended. It returns how many it deleted.
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

// unneeded reports whether no run needs a pod any more, or ever will.
func (r *Runtime) unneeded(pod *v1.Pod, now time.Time) bool {
	switch {
	case pod.Labels[labelLife] == r.life:
		return over(pod) && !r.watcher.follows(pod.Name)
	case pod.Labels[labelOwner] == r.owner:
		return r.disowned(pod, now)
	}
	return orphaned(pod, now)
}

// sweepUp deletes a pod.
func (r *Runtime) sweepUp(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return r.remove(ctx, pod.Name, pod.UID)
}

// orphaned reports whether a pod is over and nobody has deleted it, or has outlived its limits.
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
