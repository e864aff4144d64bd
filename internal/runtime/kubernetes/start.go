package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

const (
	// startWithin is how long a pod may take until its program executes: for a node to be added, and an image to be pulled.
	startWithin = 5 * time.Minute
	// dialEvery is how often a keeper is tried that does not answer yet: the kubelet tells of a container's start about a second late.
	dialEvery = 60 * time.Millisecond
)

// start does everything up to the moment when the program is executing, or takes it back.
func (n *run) start(ctx context.Context) (err error) {
	r := n.runtime
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("%w: kubernetes: pod %s did not start within %v", runtime.ErrUnavailable, n.name, startWithin))
	defer cancel()
	begun, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // a runtime that closes does not wait for an image
		select {
		case <-n.endedAt:
			stop()
		case <-begun.Done():
		}
	}()
	r.watcher.add(n.name)
	n.pump()
	created := false
	defer func() {
		if err == nil {
			return
		}
		if created {
			n.discard()
		}
		r.watcher.drop(n.name)
		for i := range n.outputs {
			_ = n.outputs[i].in.Close()
		}
		switch _, ended := n.ended.Get(); {
		case ended && ctx.Err() == nil:
			err = fmt.Errorf("start %s: %w", n.spec.Name, errClosed)
		case errors.Is(context.Cause(ctx), runtime.ErrUnavailable):
			err = context.Cause(ctx)
			if why := n.stuck(); why != "" {
				err = fmt.Errorf("%w: %s", err, why)
			}
		}
	}()
	if err := n.fence(begun); err != nil {
		return err
	}
	created = true // an answer that is lost may have been a yes
	if err := n.create(begun); err != nil {
		return err
	}
	if err := n.reach(begun); err != nil {
		return err
	}
	n.started = time.Now()
	if n.feed != nil {
		n.feed.begin(n.spec.Stdin, n.current())
	}
	go n.supervise()
	return nil
}

// create makes the pod. An answer that was lost is asked for again: the pod's nonce tells whether it is there already.
func (n *run) create(ctx context.Context) error {
	manifest := n.manifest()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		call, cancel := context.WithTimeout(ctx, callWithin)
		made, err := n.runtime.pods.create(call, manifest)
		if apierrors.IsAlreadyExists(err) {
			made, err = n.runtime.pods.get(call, n.name)
			if err == nil && made.Annotations[annotationNonce] != n.nonce {
				err = fmt.Errorf("%w: kubernetes: pod %s is there already and is another's", runtime.ErrUnavailable, n.name)
				cancel()
				return err
			}
		}
		cancel()
		if err == nil {
			n.uid = made.UID
			return nil
		}
		if lasting(err) || ctx.Err() != nil || pause > time.Second {
			return n.runtime.refused("create a pod", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// fence removes the pods of earlier attempts at the same execution and waits until they are gone: their programs must not run
// beside this one's. The kubelet confirms that; a node that cannot be reached does not, and then this attempt does not start.
func (n *run) fence(ctx context.Context) error {
	execution, mine := n.spec.Labels["execution"], n.spec.Labels["attempt"]
	number, err := strconv.Atoi(mine)
	if !labelValue.MatchString(execution) || err != nil {
		return nil
	}
	for told := false; ; told = true {
		found, err := n.runtime.pods.list(ctx, metav1.ListOptions{LabelSelector: labelPrefix + "execution=" + execution})
		if err != nil {
			return n.runtime.refused("look for earlier attempts", err)
		}
		left := ""
		for i := range found.Items {
			pod := &found.Items[i]
			earlier, err := strconv.Atoi(pod.Labels[labelPrefix+"attempt"])
			if err != nil || earlier >= number || over(pod) {
				continue
			}
			left = pod.Name
			if !told {
				if err := n.runtime.remove(ctx, pod.Name, pod.UID); err != nil {
					return n.runtime.refused("delete pod "+pod.Name+" of an earlier attempt", err)
				}
			}
		}
		if left == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: kubernetes: pod %s of an earlier attempt has not ended: its node may be unreachable", runtime.ErrUnavailable, left)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// over reports whether no program of a pod can run any more.
func over(pod *v1.Pod) bool {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed && pod.Status.Reason != "NodeLost" {
		return true
	}
	main := statusOf(pod, mainName)
	return main != nil && main.State.Terminated != nil
}

func statusOf(pod *v1.Pod, name string) *v1.ContainerStatus {
	for _, all := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		if i := slices.IndexFunc(all, func(s v1.ContainerStatus) bool { return s.Name == name }); i >= 0 {
			return &all[i]
		}
	}
	return nil
}

// reach waits for the pod, gives the order, and returns when the program executes.
func (n *run) reach(ctx context.Context) error {
	for {
		pod, deleted, changed := n.runtime.watcher.look(n.name)
		if deleted {
			return errDeleted(n.name)
		}
		if err := hopeless(pod); err != nil {
			return err
		}
		var again <-chan time.Time
		if pod != nil && pod.Spec.NodeName != "" {
			began, err := n.order(ctx)
			if began || err != nil {
				return err
			}
			again = time.After(dialEvery)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kubernetes: start pod %s: %w", n.name, ctx.Err())
		case <-changed:
		case <-again:
		}
	}
}

// hopeless reads from a pod's status why it cannot start.
func hopeless(pod *v1.Pod) error {
	if pod == nil {
		return nil
	}
	if pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodFailed {
		return fmt.Errorf("%w: kubernetes: pod %s ended before its program began: %s", runtime.ErrUnavailable, pod.Name, ending(pod))
	}
	for _, all := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range all {
			w := s.State.Waiting
			if w == nil {
				continue
			}
			is := runtime.ErrUnavailable
			switch w.Reason {
			case "InvalidImageName":
				is = runtime.ErrSpec
			case "ImagePullBackOff", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "StartError":
			default:
				continue
			}
			return fmt.Errorf("%w: kubernetes: container %s of pod %s, image %s: %s: %s", is, s.Name, pod.Name, s.Image, w.Reason, w.Message)
		}
	}
	return nil
}

// stuck says what a pod that has not started waits for.
func (n *run) stuck() string {
	pod, _, _ := n.runtime.watcher.look(n.name)
	if pod == nil {
		return "the cluster has told nothing of it"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return fmt.Sprintf("%s: %s; lower limits.memory or limits.cpus, or add nodes", c.Reason, c.Message)
		}
	}
	for _, all := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range all {
			if w := s.State.Waiting; w != nil {
				return strings.TrimSuffix(fmt.Sprintf("container %s waits: %s: %s", s.Name, w.Reason, w.Message), ": ")
			}
		}
	}
	return ""
}

// ending is what the cluster says of a pod that is over, for people.
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

// order tries once to reach the keeper and, when it does, waits until the program has begun. It returns false without an error
// when nobody answers yet.
func (n *run) order(ctx context.Context) (began bool, err error) {
	l, err := n.connect()
	if err != nil {
		return false, n.runtime.refused("reach the pod", err)
	}
	defer func() {
		if !began {
			l.close()
		}
	}()
	sent := make(chan error, 1)
	for {
		state, changed := n.now()
		switch state.Phase {
		case wire.Ready:
			if !n.ordered {
				n.ordered = true
				go func() { sent <- n.sendOrder(l) }()
			}
		case wire.Running, wire.Exited:
			return true, nil
		case wire.Refused:
			is := runtime.ErrUnavailable
			if state.Failure.Spec {
				is = runtime.ErrSpec
			}
			n.ordered = false // nothing runs
			return false, fmt.Errorf("%w: %s", is, state.Failure.Text)
		case wire.Lost, wire.Broken:
			return false, fmt.Errorf("%w: kubernetes: pod %s was lost before its program began", runtime.ErrUnavailable, n.name)
		}
		pod, deleted, podChanged := n.runtime.watcher.look(n.name)
		if deleted {
			return false, errDeleted(n.name)
		}
		if err := hopeless(pod); err != nil {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("kubernetes: start pod %s: %w", n.name, ctx.Err())
		case <-l.over:
			switch {
			case n.ordered:
				return false, fmt.Errorf("%w: kubernetes: the stream to pod %s broke off before its program began: %w", runtime.ErrUnavailable, n.name, l.err)
			case denied(l.err):
				return false, n.runtime.refused("execute the helper in the pod (pods/exec)", l.err)
			}
			return false, nil
		case err := <-sent:
			if err != nil {
				return false, err
			}
		case <-changed:
		case <-podChanged:
		}
	}
}

func errDeleted(name string) error {
	return fmt.Errorf("%w: kubernetes: pod %s was deleted by another before its program began", runtime.ErrUnavailable, name)
}

// denied reports whether an exec failed for want of rights. The WebSocket library tells of the status in its text only.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "forbidden")
}

// sendOrder says what to run. An error is the Spec's, or that of its files; a stream that breaks off ends by itself.
func (n *run) sendOrder(l *link) error {
	if err := l.sendJSON(wire.Order, n.command); err != nil {
		return nil
	}
	buffer := make([]byte, wire.Chunk)
	for _, f := range n.spec.Files {
		content, size, mode, err := open(f)
		if err != nil {
			return err
		}
		err = l.sendJSON(wire.File, wire.FileHeader{Path: f.Path, Mode: uint32(mode), Size: size})
		for left := size; left > 0 && err == nil; {
			var part int
			if part, err = io.ReadFull(content, buffer[:min(left, wire.Chunk)]); err != nil {
				_ = content.Close()
				return fmt.Errorf("input file %q: %w", f.Path, err)
			}
			left -= int64(part)
			err = l.send(wire.Frame{Kind: wire.Data, Data: buffer[:part]})
		}
		_ = content.Close()
		if err != nil {
			return nil
		}
	}
	_ = l.send(wire.Frame{Kind: wire.Go})
	return nil
}

// open opens an input.
func open(f runtime.File) (io.ReadCloser, int64, fs.FileMode, error) {
	mode := f.Mode.Perm()
	if f.Content != nil || f.Source == "" {
		if mode == 0 {
			mode = 0o644
		}
		return io.NopCloser(strings.NewReader(string(f.Content))), int64(len(f.Content)), mode, nil
	}
	file, err := os.Open(f.Source)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("%w: input file %q: %w", runtime.ErrSpec, f.Path, err)
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, 0, 0, fmt.Errorf("%w: input file %q: %s is not a regular file", runtime.ErrSpec, f.Path, f.Source)
	}
	if mode == 0 {
		mode = info.Mode().Perm()
	}
	return file, info.Size(), mode, nil
}
