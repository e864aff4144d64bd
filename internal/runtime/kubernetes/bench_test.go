//go:build unix

package kubernetes

import (
	"context"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
)

// moment is a writer that records when the first bytes came.
type moment struct{ at chan time.Time }

func (m moment) Write(p []byte) (int, error) {
	select {
	case m.at <- time.Now():
	default:
	}
	return len(p), nil
}

// times are durations of one step, one per iteration.
type times []time.Duration

// report reports the median and the longest, which for a hundred iterations is about the 99th percentile.
func (t times) report(b *testing.B, what string) {
	slices.Sort(t)
	b.ReportMetric(t[len(t)/2].Seconds()*1000, "ms-"+what)
	b.ReportMetric(t[len(t)-1].Seconds()*1000, "ms-"+what+"-most")
}

// BenchmarkRun alternates a run and a bare pod of the same image with the same program, and measures: the time to the program's first
// byte, for the bare pod with the calls of kubectl run and kubectl logs --follow; the time from the last byte until the end of a run is
// known; and the time to confirm the kill of a program that ignores SIGTERM.
func BenchmarkRun(b *testing.B) {
	r := openRuntime(b, Options{Image: tools(b)})
	defer r.Close()
	var first, bare, killed, ended times
	for b.Loop() {
		begin := time.Now()
		bare = append(bare, bareFirstByte(b, r).Sub(begin))
		m := moment{make(chan time.Time, 1)}
		spec := shell(r.options.Image, "trap '' TERM; echo begun; sleep 60")
		spec.Stdout = m
		begin = time.Now()
		started, err := r.Start(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		first = append(first, (<-m.at).Sub(begin))
		begin = time.Now()
		started.Kill("the end")
		started.Wait()
		killed = append(killed, time.Since(begin))
		m = moment{make(chan time.Time, 1)}
		spec = shell(r.options.Image, "echo last")
		spec.Stdout = m
		if started, err = r.Start(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
		at := <-m.at
		if result := started.Wait(); result.Verdict != runtime.OK {
			b.Fatalf("%+v", result)
		}
		ended = append(ended, time.Since(at))
	}
	first.report(b, "first-byte")
	bare.report(b, "bare-first-byte")
	ended.report(b, "end-known")
	killed.report(b, "kill")
}

// alone leaves only the program's container in a pod.
func alone(pod *v1.Pod) {
	main := *containerOf(pod, mainName)
	main.VolumeMounts = nil
	pod.Spec.Containers, pod.Spec.Volumes = []v1.Container{main}, nil
}

// bareFirstByte creates a pod of one container, waits until the API reports it as running, follows its log, and deletes it. It returns
// the time of the first byte.
func bareFirstByte(b *testing.B, r *Runtime) time.Time {
	b.Helper()
	n := newRun(r, shell(r.options.Image, ""))
	if err := n.plan(b.Context()); err != nil {
		b.Fatal(err)
	}
	pod := n.manifest()
	alone(pod)
	pod.Spec.Containers[0].Command = []string{"bash", "-c", "echo begun; sleep 60"}
	r.watcher.add(n.name)
	defer r.watcher.drop(n.name)
	if _, err := r.pods.create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = r.pods.delete(context.Background(), n.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	}()
	for {
		pod, _, changed := r.watcher.look(n.name)
		if pod != nil {
			if s := statusOf(pod, mainName); s != nil && s.State.Running != nil {
				break
			}
		}
		<-changed
	}
	log, err := r.pods.rest.Get().Namespace(r.options.Namespace).Resource("pods").Name(n.name).SubResource("log").
		VersionedParams(&v1.PodLogOptions{Container: mainName, Follow: true}, parameters).Stream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	return time.Now()
}

// BenchmarkBarePod measures the cluster's time for a pod of one container that does nothing: until the API reports that it runs, and that
// it has ended.
func BenchmarkBarePod(b *testing.B) {
	image, namespace := tools(b), kubernetestest.Namespace(b)
	r := openRuntime(b, Options{Namespace: namespace})
	defer r.Close()
	var running, over times
	for b.Loop() {
		n := newRun(r, shell(image, "exit 0"))
		if err := n.plan(context.Background()); err != nil {
			b.Fatal(err)
		}
		bare := n.manifest()
		alone(bare)
		bare.Spec.Containers[0].Command = []string{"bash", "-c", "sleep 0.05"}
		r.watcher.add(n.name)
		begin := time.Now()
		if _, err := r.pods.create(b.Context(), bare); err != nil {
			b.Fatal(err)
		}
		until := func(is func(*v1.ContainerStatus) bool) time.Duration {
			for {
				pod, _, changed := r.watcher.look(n.name)
				if pod != nil {
					if s := statusOf(pod, mainName); s != nil && is(s) {
						return time.Since(begin)
					}
				}
				<-changed
			}
		}
		running = append(running, until(func(s *v1.ContainerStatus) bool { return s.State.Running != nil || s.State.Terminated != nil }))
		over = append(over, until(func(s *v1.ContainerStatus) bool { return s.State.Terminated != nil }))
		_ = r.pods.delete(context.Background(), n.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		r.watcher.drop(n.name)
	}
	running.report(b, "running")
	over.report(b, "end-known")
}
