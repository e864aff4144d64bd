//go:build unix

package kubernetes

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
)

// moment is a writer that notes when the first bytes came.
type moment struct{ at chan time.Time }

func (m moment) Write(p []byte) (int, error) {
	select {
	case m.at <- time.Now():
	default:
	}
	return len(p), nil
}

// BenchmarkRun is one run of a program that writes a line and is then killed: how long until its first byte, and until the kill
// is confirmed.
func BenchmarkRun(b *testing.B) {
	r := openRuntime(b, Options{Image: tools(b)})
	defer r.Close()
	var first, killed, ended time.Duration
	for b.Loop() {
		m := moment{make(chan time.Time, 1)}
		spec := shell(r.options.Image, "trap '' TERM; echo begun; sleep 60")
		spec.Stdout = m
		begin := time.Now()
		started, err := r.Start(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		first += (<-m.at).Sub(begin)
		begin = time.Now()
		started.Kill("the end")
		started.Wait()
		killed += time.Since(begin)
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
		ended += time.Since(at)
	}
	b.ReportMetric(first.Seconds()*1000/float64(b.N), "ms-first-byte")
	b.ReportMetric(killed.Seconds()*1000/float64(b.N), "ms-kill")
	b.ReportMetric(ended.Seconds()*1000/float64(b.N), "ms-end-known")
}

// BenchmarkBarePod is what the cluster takes for a pod of one container that does the same: until the API tells that it runs.
func BenchmarkBarePod(b *testing.B) {
	image, namespace := tools(b), kubernetestest.Namespace(b)
	r := openRuntime(b, Options{Namespace: namespace})
	defer r.Close()
	var running, over time.Duration
	for b.Loop() {
		n := newRun(r, shell(image, "exit 0"))
		if err := n.plan(context.Background()); err != nil {
			b.Fatal(err)
		}
		bare := n.manifest()
		bare.Spec.InitContainers, bare.Spec.Volumes, bare.Spec.Containers[0].VolumeMounts = nil, nil, nil
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
		running += until(func(s *v1.ContainerStatus) bool { return s.State.Running != nil || s.State.Terminated != nil })
		over += until(func(s *v1.ContainerStatus) bool { return s.State.Terminated != nil })
		_ = r.pods.delete(context.Background(), n.name, metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))})
		r.watcher.drop(n.name)
	}
	b.ReportMetric(running.Seconds()*1000/float64(b.N), "ms-running")
	b.ReportMetric(over.Seconds()*1000/float64(b.N), "ms-end-known")
}
