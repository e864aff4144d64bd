//go:build unix

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

var takeDowns = flag.Int("kubernetes.cycles", 4, "how often TestTakenDown takes a part of the cluster down")

// part is the process of the test cluster's API server or kubelet, which are restarted when they end.
func part(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(kubernetestest.Cluster(t)), name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// takeDown kills a part of the cluster and waits until it has been restarted.
func takeDown(t *testing.T, name string) {
	t.Helper()
	was := part(t, name)
	if err := syscall.Kill(was, syscall.SIGKILL); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	eventually(t, name+" is there again", func() bool { return part(t, name) != was })
}

// notes are the texts that a run gave to Spec.Note.
type notes struct {
	mu  sync.Mutex
	all []string
	at  []time.Time
}

func (n *notes) note(waiting string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all, n.at = append(n.all, waiting), append(n.at, time.Now())
}

// with is when a note with a text came; ok is false if none did.
func (n *notes) with(text string) (at time.Time, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.all, func(s string) bool { return strings.Contains(s, text) })
	if i < 0 {
		return time.Time{}, false
	}
	return n.at[i], true
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.all, "\n")
}

// Output is complete, byte for byte and without repetition, while the API server and the kubelet are killed in turn and connections to
// them are cut: 10 MB on both streams, of which the kubelet's log, rotated at 64 KiB, keeps nothing.
func TestTakenDown(t *testing.T) {
	kubernetestest.Cluster(t)
	image, namespace, helper := tools(t), kubernetestest.Namespace(t), kubernetestest.Helper(t)
	path, c := throughCutter(t)
	r, err := New(Options{Kubeconfig: path, Namespace: namespace, HelperImage: helper})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const block = 100_000
	spec := shell(image, fmt.Sprintf(`block=$(seq -s ' ' 1 20000); block=${block:0:%d}
		i=0; while [ $i -lt 10000 ]; do printf '%%d\r\n\0%%s' $i "$block"; printf 'e%%d\0' $i >&2; i=$((i+1)); read -t 0.3 x && break; done; printf 'end %%d' $i; exit 6`, block))
	spec.Limits = runtime.Limits{Wall: time.Hour, CPU: time.Hour, Output: 2 << 30}
	in := &held{over: make(chan struct{})}
	spec.Stdin = in
	var out, errs noted
	spec.Stdout, spec.Stderr = &out, &errs
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan runtime.Result, 1)
	go func() { ended <- started.Wait() }()
	comes := func(what string, beyond int) {
		t.Helper()
		eventually(t, what, func() bool {
			select {
			case result := <-ended:
				t.Fatalf("the run ended before %s, with %d bytes: %+v", what, out.Len(), result)
			default:
			}
			return out.Len() > beyond
		})
	}
	for i := range *takeDowns {
		size := out.Len()
		takeDown(t, []string{"apiserver", "kubelet"}[i%2])
		c.cut()
		comes(fmt.Sprintf("output comes again after cycle %d", i), size+2*block)
	}
	comes("10 MB have come", 10e6)
	for name, most := range map[string]int64{wire.Program + "\x00init": 6 << 20, wire.Image + "\x00keep": 8 << 20} {
		if has := largest(t, runtimetest.Processes(name)); has == 0 || has > most {
			t.Errorf("%q has %d KB of memory, want at most %d", name, has>>10, most>>10)
		} else {
			t.Logf("%q has %d KB of memory", name, has>>10)
		}
	}
	close(in.over)
	result := <-ended
	if result.Verdict != runtime.NonzeroExit || result.ExitCode != 6 {
		t.Fatalf("%+v", result)
	}
	var sequence bytes.Buffer
	for i := 1; sequence.Len() <= block; i++ {
		fmt.Fprintf(&sequence, "%d ", i)
	}
	var want, wantErr bytes.Buffer
	n := bytes.Count([]byte(errs.String()), []byte{0})
	for i := range n {
		fmt.Fprintf(&want, "%d\r\n\x00%s", i, sequence.Bytes()[:block])
		fmt.Fprintf(&wantErr, "e%d\x00", i)
	}
	fmt.Fprintf(&want, "end %d", n)
	if out.String() != want.String() || errs.String() != wantErr.String() {
		t.Errorf("%d and %d bytes came, %d and %d were written", out.Len(), len(errs.String()), want.Len(), wantErr.Len())
	}
	t.Logf("%d bytes were whole after %d cycles", out.Len(), *takeDowns)
}

// held is an input of one line, which comes when over is closed.
type held struct {
	over chan struct{}
	said bool
}

func (h *held) Read(p []byte) (int, error) {
	<-h.over
	if h.said {
		return 0, errors.New("no more")
	}
	h.said = true
	return copy(p, "over\n"), nil
}

func (n *noted) Len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Len()
}

// beside adds a second node, which takes no pods, until the test ends: if all nodes are silent, a cluster assumes that it is cut off and
// gives up none.
func beside(t *testing.T) {
	t.Helper()
	const name, lease = "pawl-test-beside", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": metav1.Now(), "lastTransitionTime": metav1.Now()}
	kubernetestest.Do(t, "POST", "/api/v1/nodes", map[string]any{"metadata": map[string]any{"name": name},
		"spec": map[string]any{"unschedulable": true}, "status": map[string]any{"conditions": []any{ready}}}, nil)
	held := map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"holderIdentity": name, "leaseDurationSeconds": 8, "renewTime": metav1.NowMicro()}}
	kubernetestest.Do(t, "POST", lease, held, &held)
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				held["spec"].(map[string]any)["renewTime"] = metav1.NowMicro()
				kubernetestest.Do(t, "PUT", lease+"/"+name, held, &held)
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-stopped
		kubernetestest.Do(t, "DELETE", "/api/v1/nodes/"+name, nil, nil)
		kubernetestest.Do(t, "DELETE", lease+"/"+name, nil, nil)
	})
}

// A silent node is reported within 15 seconds, and its runs end when the cluster gives it up: the node is at fault and not the program.
// The next attempt does not start while the program may still run.
func TestNodeLost(t *testing.T) {
	const orphan, token = 12 * time.Second, "node-lost-2468"
	r := openRuntime(t, Options{Image: tools(t), OrphanAfter: orphan})
	defer r.Close()
	beside(t)
	var said notes
	spec := shell(r.options.Image, "echo begun; while :; do sleep 1; done # "+token)
	spec.Labels, spec.Note, spec.Limits.Wall = runtime.Labels{"execution": "ex_node", "attempt": "1"}, said.note, 5*time.Minute
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	kubelet := part(t, "kubelet")
	if err := syscall.Kill(kubelet, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	goOn := sync.OnceFunc(func() { _ = syscall.Kill(kubelet, syscall.SIGCONT) })
	defer goOn()
	result := started.Wait()
	took := time.Since(stopped)
	if result.Verdict != runtime.InfraError || result.Cause != runtime.NodeLost {
		t.Errorf("%+v", result)
	}
	at, ok := said.with("has not answered since")
	if !ok || at.Sub(stopped) > 15*time.Second {
		t.Errorf("told %v after %v: %s", ok, at.Sub(stopped), &said)
	}
	// The cluster's grace period is 20 s after the last heartbeat, and the pods' is 10 s more.
	if took > 45*time.Second {
		t.Errorf("the verdict took %v", took)
	}
	t.Logf("told after %v, ended after %v", at.Sub(stopped).Round(time.Millisecond), took.Round(time.Millisecond))
	eventually(t, "the keeper has ended the program", func() bool { return len(runtimetest.Processes(token)) == 0 })
	if dead := time.Since(stopped); dead > orphan+orphanSlack+20*time.Second {
		t.Errorf("the program went on for %v", dead)
	}
	// The kubelet stays silent: the next attempt waits for as long as the program might have run on, and only then creates a pod.
	spec = shell(r.options.Image, "exit 3")
	spec.Labels = runtime.Labels{"execution": "ex_node", "attempt": "2"}
	var second notes
	spec.Note = second.note
	go func() {
		eventually(t, "the next attempt waits", func() bool { _, ok := second.with("of an earlier attempt has not ended"); return ok })
		goOn()
	}()
	next, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if result := next.Wait(); result.ExitCode != 3 {
		t.Errorf("%+v", result)
	}
}

// A drained pod is reported as such, and the program's earlier output is kept.
func TestEvicted(t *testing.T) {
	r := openRuntime(t, Options{Image: tools(t)})
	defer r.Close()
	spec := shell(r.options.Image, "echo begun; sleep 60")
	var out noted
	spec.Stdout = &out
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	evict(t, started.(*run))
	if result := started.Wait(); result.Verdict != runtime.InfraError || result.Cause != runtime.Evicted || out.String() != "begun\n" {
		t.Errorf("%q %+v", out.String(), result)
	}
}

// cordon marks the node as one that takes no more pods, or undoes that.
func cordon(t *testing.T, is bool) {
	t.Helper()
	const node = "/api/v1/nodes/pawl-test"
	eventually(t, "the node is changed", func() bool { // the kubelet and the controllers change it, too
		var found map[string]any
		kubernetestest.Do(t, "GET", node, nil, &found)
		spec := found["spec"].(map[string]any)
		spec["unschedulable"] = is
		return kubernetestest.Do(t, "PUT", node, found, nil) == http.StatusOK
	})
}

// Draining a node, as kubectl drain does, ends its runs with that cause; the next attempt reports that no node takes it, and runs when
// one does.
func TestDrained(t *testing.T) {
	const token = "drained-9753"
	r := openRuntime(t, Options{Image: tools(t)})
	defer r.Close()
	attempt := func(number, script string, note func(string)) runtime.Spec {
		spec := shell(r.options.Image, script)
		spec.Labels, spec.Note = runtime.Labels{"execution": "ex_drained", "attempt": number}, note
		return spec
	}
	spec := attempt("1", "echo begun; trap '' TERM; while :; do sleep 1; done # "+token, nil)
	var out noted
	spec.Stdout = &out
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	cordon(t, true)
	defer cordon(t, false)
	drained := time.Now()
	evict(t, started.(*run))
	if result := started.Wait(); result.Verdict != runtime.InfraError || result.Cause != runtime.Evicted || out.String() != "begun\n" {
		t.Errorf("%q %+v", out.String(), result)
	}
	t.Logf("known after %v", time.Since(drained).Round(time.Millisecond))
	if left := runtimetest.Processes(token); len(left) > 0 {
		t.Errorf("the program goes on: %v", left)
	}
	var said notes
	back := sync.OnceFunc(func() { cordon(t, false) })
	next, err := r.Start(t.Context(), attempt("2", "exit 3", func(waiting string) {
		said.note(waiting)
		if strings.Contains(waiting, "unschedulable") {
			go back()
		}
	}))
	if err != nil {
		t.Fatalf("%v, told %q", err, said.String())
	}
	if result := next.Wait(); result.ExitCode != 3 {
		t.Errorf("%+v", result)
	}
	if _, ok := said.with("unschedulable"); !ok {
		t.Errorf("told %q", said.String())
	}
}

// evict asks the cluster to evict a pod, as a drain does for each.
func evict(t *testing.T, n *run) {
	t.Helper()
	namespace := n.runtime.options.Namespace
	kubernetestest.Do(t, "POST", "/api/v1/namespaces/"+namespace+"/pods/"+n.name+"/eviction", map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": n.name, "namespace": namespace}}, nil)
}

// The output is lost with a killed keeper: the run fails because of the cluster and never succeeds.
func TestKeeperKilled(t *testing.T) {
	const token, orphan = "keeper-killed-1357", 4711 * time.Second // the number distinguishes its keeper from others
	r := openRuntime(t, Options{Image: tools(t), OrphanAfter: orphan})
	defer r.Close()
	started, err := r.Start(t.Context(), shell(r.options.Image, "sleep 300 # "+token))
	if err != nil {
		t.Fatal(err)
	}
	keepers := runtimetest.Processes("keep\x00" + orphan.String())
	if len(keepers) == 0 {
		t.Fatal("no keeper is seen")
	}
	for _, k := range keepers {
		pid, err := strconv.Atoi(strings.Fields(k)[0])
		if err != nil {
			t.Fatalf("%q", k)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if result := started.Wait(); result.Verdict != runtime.InfraError {
		t.Errorf("%+v", result)
	}
	eventually(t, "the program is gone", func() bool { return len(runtimetest.Processes(token)) == 0 })
}

// While a pod does not start, the reason is reported in the cluster's words.
func TestWaitsAreTold(t *testing.T) {
	image := tools(t)
	namespace := kubernetestest.Namespace(t)
	kubernetestest.Do(t, "POST", "/api/v1/namespaces/"+namespace+"/resourcequotas", map[string]any{"metadata": map[string]any{"name": "pods"},
		"spec": map[string]any{"hard": map[string]any{"pods": "0"}}}, nil)
	for name, c := range map[string]struct {
		change  func(*runtime.Spec)
		options Options
		say     string
		cure    func()
		ends    string // the error, if the wait is short
	}{
		"quota": {func(*runtime.Spec) {}, Options{Namespace: namespace}, "exceeded quota", func() {
			kubernetestest.Do(t, "DELETE", "/api/v1/namespaces/"+namespace+"/resourcequotas/pods", nil, nil)
		}, ""},
		"unschedulable": {func(s *runtime.Spec) { s.Limits.CPUs = 500 }, Options{}, "Insufficient cpu", nil, "Insufficient cpu"},
		"helper":        {func(*runtime.Spec) {}, Options{HelperImage: "127.0.0.1:1/helper:1"}, "cannot pull image 127.0.0.1:1/helper:1", nil, "cannot pull image"},
		"image":         {func(s *runtime.Spec) { s.Container.Image = "127.0.0.1:1/absent:1" }, Options{}, "cannot pull image 127.0.0.1:1/absent:1", nil, "cannot pull image"},
	} {
		t.Run(name, func(t *testing.T) {
			r := openRuntime(t, c.options)
			defer r.Close()
			r.pullWithin = 3 * time.Second
			var said notes
			spec := shell(image, "exit 0")
			c.change(&spec)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			spec.Note = func(waiting string) {
				said.note(waiting)
				if !strings.Contains(waiting, c.say) {
					return
				}
				if c.cure != nil {
					c.cure()
				} else if name == "unschedulable" {
					time.AfterFunc(time.Second, cancel)
				}
			}
			started, err := r.Start(ctx, spec)
			if _, ok := said.with(c.say); !ok {
				t.Errorf("told %q, %v", said.String(), err)
			}
			if c.cure != nil {
				if err != nil {
					t.Fatal(err)
				}
				if result := started.Wait(); result.Verdict != runtime.OK || said.all[len(said.all)-1] != "" {
					t.Errorf("%+v, told %q", result, said.String())
				}
			} else if err == nil || name != "unschedulable" && !strings.Contains(err.Error(), c.ends) {
				t.Errorf("%v, want %q", err, c.ends)
			}
		})
	}
}
