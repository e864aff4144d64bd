package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// heirs is the state of the pods that earlier processes of this worker left. It is guarded by the runtime.
type heirs struct {
	settled bool
	kept    []runtime.Labels
	until   time.Time   // pods that have not been taken up by then never will be
	taken   []types.UID // pods that have been
}

const (
	// takeUpWithin is how long the worker waits for a kept run to be taken up.
	takeUpWithin = 2 * time.Minute
	// lookWithin bounds the query of one pod that an earlier process left, and looksAtOnce the number of concurrent queries.
	lookWithin  = 4 * time.Second
	looksAtOnce = 32
)

// lasting reports whether the run may continue without this process.
func (n *run) lasting() bool {
	return n.spec.Lasting && n.spec.Stdin == nil && n.runtime.options.Worker != ""
}

// Outlived implements runtime.Keeper. It asks each keeper for the state of its run: a run that has not begun, or that ended because
// its worker was missing or its process 1 died, is not taken up.
func (r *Runtime) Outlived(ctx context.Context) ([]runtime.Labels, error) {
	if r.options.Worker == "" {
		return nil, nil
	}
	left, err := r.left(ctx)
	if err != nil {
		return nil, err
	}
	goes := make([]bool, len(left))
	slots := make(chan struct{}, looksAtOnce)
	var all sync.WaitGroup
	for i := range left {
		if !lastingPod(&left[i]) || over(&left[i]) {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			goes[i] = r.goesOn(ctx, left[i].Name)
		})
	}
	all.Wait()
	var labels []runtime.Labels
	for i := range left {
		if goes[i] {
			labels = append(labels, labelsOf(&left[i]))
		}
	}
	return labels, nil
}

// left lists the pods that earlier processes of this worker left.
func (r *Runtime) left(ctx context.Context) ([]v1.Pod, error) {
	var found *v1.PodList
	err := insist(ctx, func(ctx context.Context) (err error) {
		found, err = r.pods.list(ctx, metav1.ListOptions{LabelSelector: labelOwner + "=" + r.owner + "," + labelLife + "!=" + r.life})
		return err
	})
	if err != nil {
		return nil, r.refused("look for what the process before has left", err)
	}
	return found.Items, nil
}

// goesOn asks a keeper whether its program still runs, or has ended by itself.
func (r *Runtime) goesOn(ctx context.Context, pod string) bool {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	said := make(chan wire.State, 1)
	l, err := r.dial(pod, wire.Greeting{Version: wire.Version, Look: true}, silence, func(f wire.Frame) error {
		var s wire.State
		if err := f.Decode(&s); err != nil {
			return err
		}
		said <- s
		return errLooked
	})
	if err != nil {
		return false
	}
	defer l.close()
	select {
	case s := <-said:
		return s.Version == wire.Version && (s.Phase == wire.Running || s.Phase == wire.Exited && s.Report != nil && s.Report.Ending != wire.ByKill)
	case <-l.over:
	case <-ctx.Done():
	}
	return false
}

var errLooked = errors.New("the state is known")

// labelsOf are the labels of the Spec that a pod was created for.
func labelsOf(pod *v1.Pod) runtime.Labels {
	labels := make(runtime.Labels)
	for k, v := range pod.Labels {
		if name, ok := strings.CutPrefix(k, labelPrefix); ok && k != labelOwner && k != labelLife && k != labelNetwork {
			labels[name] = v
		}
	}
	return labels
}

func (r *Runtime) Settle(kept []runtime.Labels) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heirs = heirs{settled: true, kept: kept, until: time.Now().Add(takeUpWithin)}
	if !r.runs.Closed() && r.options.Worker != "" {
		r.tidy.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), callWithin)
			defer cancel()
			_, _ = r.sweep(ctx, time.Now()) // the next one will
		})
	}
}

// disowned reports whether a pod of an earlier process has not been taken up and will not be.
func (r *Runtime) disowned(pod *v1.Pod, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case slices.Contains(r.heirs.taken, pod.UID):
		return false
	case !r.heirs.settled:
		return orphaned(pod, now)
	case now.After(r.heirs.until):
		return true
	}
	return !slices.ContainsFunc(r.heirs.kept, func(l runtime.Labels) bool { return l.In(pod.Labels, labelPrefix) })
}

// lastingPod reports whether a pod may be taken up: it was created to outlive its worker, and it is not being deleted.
func lastingPod(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Annotations[annotationLasting] == "true"
}

func (r *Runtime) Resume(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	spec.Limits = spec.Limits.Or(r.options.Defaults)
	n := newRun(r, spec)
	return r.begin(n, func() error { return n.resume(ctx) })
}

// resume attaches to the existing pod and reads its output from the beginning.
func (n *run) resume(ctx context.Context) (err error) {
	r := n.runtime
	left, err := r.left(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(left, func(pod v1.Pod) bool { return lastingPod(&pod) && n.spec.Labels.In(pod.Labels, labelPrefix) })
	if i < 0 {
		return fmt.Errorf("%w: kubernetes: the pod that the process before left for %s is gone", runtime.ErrUnavailable, n.spec.Name)
	}
	pod := &left[i]
	n.name, n.uid, n.ordered = pod.Name, pod.UID, true
	n.started = pod.CreationTimestamp.Time
	if s := statusOf(pod, mainName); s != nil && s.State.Running != nil {
		n.started = s.State.Running.StartedAt.Time
	}
	r.mu.Lock()
	r.heirs.taken = append(r.heirs.taken, n.uid)
	r.mu.Unlock()
	r.watcher.add(n.name)
	n.pump()
	defer func() {
		if err == nil {
			return
		}
		n.discard()
		r.watcher.drop(n.name)
		for i := range n.outputs {
			_ = n.outputs[i].in.Close()
		}
	}()
	// The watch reports only changes of pods that it follows: changes between the listing and this point are missed, so
	// the pod is read again. Its program runs, and must not be lost because the API server is just starting.
	err = insist(ctx, func(ctx context.Context) (err error) {
		pod, err = r.pods.get(ctx, n.name)
		return err
	})
	if err != nil {
		return r.refused("look up the pod of the process before", err)
	}
	r.watcher.begin(pod)
	if _, err = n.connect(); err != nil {
		return r.refused("reach the pod of the process before", err)
	}
	go n.supervise()
	return nil
}
