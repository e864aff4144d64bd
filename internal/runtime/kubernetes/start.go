package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
	"github.com/pawl-run/pawl/internal/runtime/runs"
)

const (
	// startWithin bounds the time until a pod's program executes: the wait for room in the quota, for a new node, and for the pull of
	// an image.
	startWithin = 15 * time.Minute
	// pullWithin is how long the pull of an image may fail: the registry may have a fault, or the name may be wrong.
	pullWithin = 5 * time.Minute
	// keeperlessFirst and keeperlessMost are the shortest and longest pause before a new pod replaces one whose keeper did not start.
	keeperlessFirst = 5 * time.Second
	keeperlessMost  = time.Minute
	// orphanSlack is by how much longer than OrphanAfter a program may run without a worker: until a keeper has noticed that a stream is
	// silent, and process 1 has killed all processes.
	orphanSlack = 30 * time.Second
	// fenceQuiet is how long an earlier attempt may take to end before Spec.Note reports it.
	fenceQuiet = 10 * time.Second
	// answerWithin is how long after its start a keeper may leave an exec unanswered before Spec.Note reports it.
	answerWithin = 5 * time.Second
)

// start does everything up to the moment when the program executes, or undoes it.
func (n *run) start(ctx context.Context) (err error) {
	r := n.runtime
	entered := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	begun, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // closing the runtime does not wait for an image
		select {
		case <-n.endedAt:
			if e, _ := n.ended.Get(); e.Verdict != runtime.OutputLimit { // the program has begun, and the keeper reports that next
				stop()
			}
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
			err = fmt.Errorf("start %s: %w", n.spec.Name, runs.ErrClosed)
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = fmt.Errorf("%w: kubernetes: pod %s did not start within %v", runtime.ErrUnavailable, n.name, time.Since(entered).Round(time.Second))
			if n.waiting != "" {
				err = fmt.Errorf("%w: %s", err, n.waiting)
			}
		}
	}()
	if err := n.fence(begun); err != nil {
		return err
	}
	created = true // a creation without a response may have succeeded
	for pause := keeperlessFirst; ; pause = min(2*pause, keeperlessMost) {
		if err = n.create(begun); err == nil {
			err = n.reach(begun)
		}
		if !errors.Is(err, errKeeperless) || time.Since(entered) > r.pullWithin {
			break
		}
		n.say(err.Error())
		n.discard()
		r.watcher.drop(n.name)
		n.rename()
		r.watcher.add(n.name)
		select {
		case <-begun.Done():
			return err
		case <-time.After(pause):
		}
	}
	if err != nil {
		return err
	}
	n.started = time.Now()
	n.say("")
	if n.feed != nil {
		n.feed.begin(n.spec.Stdin, n.current())
	}
	go n.supervise()
	return nil
}

// create makes the pod. After a lost response it asks again: the pod's nonce shows whether the pod exists already. A
// request is not cancelled with the start: the API server might carry it out after the DELETE that removes the pod.
func (n *run) create(ctx context.Context) error {
	manifest := n.manifest()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWithin)
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
		switch full := quotaIsFull(err); {
		case full || apierrors.IsTooManyRequests(err):
			n.say(n.runtime.refused("create a pod", err).Error())
		case lasting(err) || ctx.Err() != nil || pause > time.Second:
			return n.runtime.refused("create a pod", err)
		}
		select {
		case <-ctx.Done():
			return n.runtime.refused("create a pod", err)
		case <-time.After(pause):
		}
	}
}

// fence removes the pods of earlier attempts at the same execution and waits until they are gone: their programs must not run beside
// this one's. The kubelet confirms that. An unreachable node does not; its keeper ends the program when no worker has reached it for
// OrphanAfter, and no worker can have reached it since the pod was told to end, so fence waits for that time instead.
func (n *run) fence(ctx context.Context) error {
	execution, mine := n.spec.Labels["execution"], n.spec.Labels["attempt"]
	number, err := strconv.Atoi(mine)
	if !labelValue.MatchString(execution) || err != nil || number < 2 {
		return nil
	}
	began, certain := time.Now(), n.runtime.options.OrphanAfter+orphanSlack
	pause := 200 * time.Millisecond
	for told := false; ; told = true {
		call, cancel := context.WithTimeout(ctx, callWithin)
		found, err := n.runtime.pods.list(call, metav1.ListOptions{LabelSelector: labelPrefix + "execution=" + execution})
		cancel()
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
		if left == "" || time.Since(began) > certain {
			return nil
		}
		if time.Since(began) > fenceQuiet {
			n.say(fmt.Sprintf("pod %s of an earlier attempt has not ended: its node may be unreachable; its program certainly has by %s", left, began.Add(certain).UTC().Format("15:04:05Z")))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: kubernetes: pod %s of an earlier attempt has not ended: its node may be unreachable", runtime.ErrUnavailable, left)
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// reach waits for the pod, sends the order, and returns when the program executes.
func (n *run) reach(ctx context.Context) error {
	var answered time.Time // start of the try that the keeper answered
	var tries *tries       // nil: the pod has no node
	defer func() {
		if tries != nil {
			tries.end(answered)
		}
	}()
	event := ""
	for {
		pod, deleted, changed := n.runtime.watcher.look(n.name)
		if deleted {
			return errDeleted(n.name, pod)
		}
		said := event
		if pod == nil {
			said = n.runtime.untold()
		}
		if err := n.waits(pod, said); err != nil {
			return err
		}
		var again <-chan time.Time
		if pod == nil {
			again = time.After(lookEvery)
		}
		if pod != nil && pod.Spec.NodeName != "" {
			if tries == nil {
				tries = n.runtime.pace.begin(time.Now())
			}
			keeper := statusOf(pod, keeperName)
			runs := keeper != nil && keeper.State.Running != nil
			if now := time.Now(); tries.due(now, runs) {
				began, err := n.order(ctx)
				if began {
					answered = now
				}
				if began || err != nil {
					return err
				}
				tries.failed(time.Now())
			}
			switch {
			case runs && time.Since(keeper.State.Running.StartedAt.Time) > answerWithin:
				event = fmt.Sprintf("node %s is up, and its kubelet does not answer an exec yet: %v", pod.Spec.NodeName, n.current().err)
			case !runs && tries.asksEvents(time.Now()):
				event = n.warning(ctx)
			}
			again = time.After(time.Until(tries.next))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kubernetes: start pod %s: %w", n.name, ctx.Err())
		case <-changed:
		case <-again:
		}
	}
}

// waits reports through Spec.Note what the pod waits for according to the cluster, or else event. It returns an error when the
// pod will not start.
func (n *run) waits(pod *v1.Pod, event string) error {
	if err := hopeless(pod); err != nil {
		return err
	}
	said := unpulled(pod)
	switch {
	case said == "":
		n.unpulledSince = time.Time{}
	case n.unpulledSince.IsZero():
		n.unpulledSince = time.Now()
	case time.Since(n.unpulledSince) > n.runtime.pullWithin:
		return fmt.Errorf("%w: kubernetes: %s", runtime.ErrUnavailable, said)
	}
	if said = waitsFor(pod); said == "" {
		said = event
	}
	n.say(said)
	return nil
}

// warning is the cluster's last warning event about a pod, such as a volume that cannot be mounted; empty: there is none.
func (n *run) warning(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	found, err := n.runtime.pods.events(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + n.name + ",type=" + v1.EventTypeWarning})
	if err != nil {
		return "the cluster does not tell its events: " + n.runtime.refused("list events", err).Error()
	}
	last := -1
	for i := range found.Items {
		if last < 0 || !found.Items[i].LastTimestamp.Before(&found.Items[last].LastTimestamp) {
			last = i
		}
	}
	if last < 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", found.Items[last].Reason, strings.TrimSpace(found.Items[last].Message))
}

// say reports through Spec.Note what the run waits for, when that has changed.
func (n *run) say(waiting string) {
	if n.waiting == waiting {
		return
	}
	n.waiting = waiting
	if n.spec.Note != nil {
		n.spec.Note(waiting)
	}
}

// order tries once to reach the keeper and, when it does, waits until the program has begun. It returns false without an error
// when the keeper does not answer yet.
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
	look := time.NewTicker(lookEvery) // the keeper runs before the program's image is pulled
	defer look.Stop()
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
			if n.ordered { // the program may have begun; its last output and its end are reported like those of a run
				return true, nil
			}
			return false, fmt.Errorf("%w: kubernetes: pod %s was lost before its program began", runtime.ErrUnavailable, n.name)
		}
		pod, deleted, podChanged := n.runtime.watcher.look(n.name)
		if deleted {
			return false, errDeleted(n.name, pod)
		}
		if !n.ordered { // else the keeper reports how it ends
			if err := n.waits(pod, ""); err != nil {
				return false, err
			}
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("kubernetes: start pod %s: %w", n.name, ctx.Err())
		case <-l.over:
			switch {
			case n.ordered:
				return false, fmt.Errorf("%w: kubernetes: the stream to pod %s broke off before its program began: %w", runtime.ErrUnavailable, n.name, l.err)
			case errors.As(l.err, new(versionError)):
				return false, fmt.Errorf("%w: kubernetes: pod %s: %w", runtime.ErrUnavailable, n.name, l.err)
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
		case <-look.C:
		}
	}
}

// errDeleted is the error of a start whose pod is gone; pod is its last known state, or nil.
func errDeleted(name string, pod *v1.Pod) error {
	return &runtime.TakenError{Cause: causeOf(pod),
		Err: fmt.Errorf("%w: kubernetes: pod %s was deleted by another before its program began: %s", runtime.ErrUnavailable, name, describe(pod))}
}

// denied reports whether an exec failed because of missing permissions. The WebSocket library reports the status only in its text.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || strings.Contains(err.Error(), "403 Forbidden") || strings.Contains(err.Error(), "forbidden")
}

// sendOrder sends the command and its files. An error is one of the Spec or of its files; a stream that breaks off ends by itself.
func (n *run) sendOrder(l *link) error {
	if err := l.sendMessage(wire.Order, &n.command); err != nil {
		return nil
	}
	buffer := make([]byte, wire.Chunk)
	for _, f := range n.spec.Files {
		content, size, mode, err := f.Open()
		if err != nil {
			return err
		}
		err = l.sendMessage(wire.File, &wire.FileHeader{Path: f.Path, Mode: uint32(mode), Size: size})
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
