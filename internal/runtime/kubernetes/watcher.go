package kubernetes

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher follows this runtime's pods with one watch, and wakes the runs that wait for a pod.
type watcher struct {
	runtime *Runtime
	within  time.Duration // bounds a listing
	mu      sync.Mutex
	pods    map[string]*seen
	fault   error // of the last listing
}

// seen is the known state of a pod that a run follows.
type seen struct {
	pod     *v1.Pod // nil: nothing yet
	deleted bool    // the object is gone
	changed chan struct{}
}

func newWatcher(r *Runtime) *watcher {
	return &watcher{runtime: r, within: callWithin, pods: make(map[string]*seen)}
}

// add begins to follow a pod.
func (w *watcher) add(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[name] = &seen{changed: make(chan struct{})}
}

// begin records a pod that was read outside of the watch, unless the watch has reported it meanwhile.
func (w *watcher) begin(pod *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.pods[pod.Name]; s != nil && s.pod == nil {
		s.pod = pod
	}
}

func (w *watcher) drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, name)
}

func (w *watcher) follows(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[name] != nil
}

// trouble is the error of the last listing of pods; nil: it succeeded.
func (w *watcher) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

// untold explains why the cluster reports nothing about pods; empty: nothing is wrong.
func (r *Runtime) untold() string {
	if err := r.watcher.trouble(); err != nil {
		return "the cluster does not tell of the pod: " + r.refused("list pods", err).Error()
	}
	return ""
}

// look returns the known state of a pod, and a channel that is closed when it changes.
func (w *watcher) look(name string) (pod *v1.Pod, deleted bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.pods[name]; s != nil {
		return s.pod, s.deleted, s.changed
	}
	return nil, true, nil
}

// note records a state of a pod from the cluster.
func (w *watcher) note(pod *v1.Pod, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.pods[pod.Name]
	if s == nil || s.pod != nil && s.pod.UID != pod.UID {
		return
	}
	s.pod, s.deleted = pod, s.deleted || deleted
	close(s.changed)
	s.changed = make(chan struct{})
}

// missing marks as deleted the pods that existed before a listing and are not in it.
func (w *watcher) missing(before, listed map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, s := range w.pods {
		if before[name] && !listed[name] && !s.deleted {
			s.deleted = true
			close(s.changed)
			s.changed = make(chan struct{})
		}
	}
}

const (
	// followAgain is the pause after a watch that failed.
	followAgain = 500 * time.Millisecond
	// watchFor is how long one watch lasts. A proxy may keep a connection open that the API server has lost, and the watch is then
	// silent for ever.
	watchFor = 5 * time.Minute
)

// follow watches until ctx ends. A watch that has broken off begins again with a listing, so that nothing is missed.
func (w *watcher) follow(ctx context.Context) {
	for ctx.Err() == nil {
		w.once(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
}

// once lists the pods and watches them from that state until the watch ends: the server ends it after watchFor.
func (w *watcher) once(ctx context.Context) {
	pods, options := w.runtime.pods, metav1.ListOptions{LabelSelector: labelOwner + "=" + w.runtime.owner}
	before, listed := make(map[string]bool), make(map[string]bool)
	w.mu.Lock()
	for name, s := range w.pods {
		before[name] = s.pod != nil
	}
	w.mu.Unlock()
	listing, cancel := context.WithTimeout(ctx, w.within)
	found, err := pods.list(listing, options)
	cancel()
	w.mu.Lock()
	w.fault = err
	w.mu.Unlock()
	if err != nil {
		return // the runs that need the cluster report the error
	}
	for i := range found.Items {
		listed[found.Items[i].Name] = true
		w.note(&found.Items[i], false)
	}
	w.missing(before, listed)
	options.ResourceVersion, options.TimeoutSeconds = found.ResourceVersion, new(int64(watchFor.Seconds()))
	watching, cancel := context.WithTimeout(ctx, watchFor+w.within)
	defer cancel()
	stream, err := pods.watch(watching, options)
	if err != nil {
		return
	}
	defer stream.Stop()
	for {
		select {
		case <-watching.Done():
			return
		case e, ok := <-stream.ResultChan():
			pod, isPod := e.Object.(*v1.Pod)
			if !ok || !isPod {
				return // or an error such as 410: the next listing includes what happened meanwhile
			}
			w.note(pod, e.Type == watch.Deleted)
		}
	}
}
