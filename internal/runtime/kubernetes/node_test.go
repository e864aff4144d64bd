//go:build unix

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// shell runs a script in an image.
func shell(image, script string) runtime.Spec {
	return runtime.Spec{Name: "test", Argv: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Container: &runtime.Container{Image: image, Entrypoint: []string{"bash"}}, Limits: runtime.Limits{Wall: time.Minute, CPU: time.Minute}}
}

// cutter forwards connections to a server, and can cut them.
type cutter struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     map[net.Conn]bool
	cuts     int
	refuses  bool
}

func newCutter(t *testing.T, to string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, to: to, open: make(map[net.Conn]bool)}
	t.Cleanup(func() { _ = l.Close(); c.cut() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

func (c *cutter) serve(conn net.Conn) {
	server, err := net.Dial("tcp", c.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	c.mu.Lock()
	if c.refuses {
		_, _ = conn.Close(), server.Close()
	}
	c.open[conn], c.open[server] = true, true
	c.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
		go func() { _, _ = io.Copy(way[0], way[1]); done <- struct{}{} }()
	}
	<-done
	_, _ = conn.Close(), server.Close()
}

// refuse makes new connections fail, or no longer.
func (c *cutter) refuse(is bool) {
	c.mu.Lock()
	c.refuses = is
	c.mu.Unlock()
	c.cut()
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
	clear(c.open)
	c.cuts++
}

// throughCutter writes a kubeconfig that leads to the cluster through a cutter.
func throughCutter(t *testing.T) (string, *cutter) {
	t.Helper()
	config, _, err := connect(kubernetestest.Cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(kubernetestest.Cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(config.Host, "https://")
	c := newCutter(t, host)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	changed := strings.ReplaceAll(string(text), host, c.listener.Addr().String())
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, c
}

// Output and input are complete, byte by byte, however often the connections to the cluster are cut.
func TestCutConnections(t *testing.T) {
	kubernetestest.Cluster(t)
	image, namespace, helper := tools(t), kubernetestest.Namespace(t), kubernetestest.Helper(t)
	path, c := throughCutter(t)
	r, err := New(Options{Kubeconfig: path, Namespace: namespace, HelperImage: helper})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const lines = 60_000
	spec := shell(image, fmt.Sprintf(`for ((i=0; i<%d; i++)); do printf 'line %%d\r\n\0' $i; if ((i %% 10 == 0)); then printf 'error %%d' $i >&2; fi; if ((i %% 6000 == 0)); then sleep 0.4; fi; done; cat; exit 7`, lines))
	input := bytes.Repeat([]byte("0123456789abcde\n"), 100_000)
	spec.Stdin = bytes.NewReader(input)
	var out, errs noted
	spec.Stdout, spec.Stderr = &out, &errs
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var cutting sync.WaitGroup
	passed := 0
	cutting.Go(func() {
		tick := time.NewTicker(700 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if size := out.Len(); size > passed { // a busy machine may not have reconnected yet
					passed = size
					c.cut()
				}
			}
		}
	})
	result := started.Wait()
	close(over)
	cutting.Wait()
	var want, wantErr bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&want, "line %d\r\n\x00", i)
		if i%10 == 0 {
			fmt.Fprintf(&wantErr, "error %d", i)
		}
	}
	want.Write(input)
	if result.Verdict != runtime.NonzeroExit || result.ExitCode != 7 || c.cuts < 3 {
		t.Errorf("%+v after %d cuts", result, c.cuts)
	}
	if out.String() != want.String() || errs.String() != wantErr.String() {
		t.Errorf("%d and %d bytes came, %d and %d were written", out.Len(), errs.Len(), want.Len(), wantErr.Len())
	}
	t.Logf("%d bytes were whole after %d cuts", out.Len()+errs.Len(), c.cuts)
}

// A program can end, and its limits apply, while the cluster's API is unreachable; afterwards everything is there.
func TestAway(t *testing.T) {
	kubernetestest.Cluster(t)
	image, namespace, helper := tools(t), kubernetestest.Namespace(t), kubernetestest.Helper(t)
	path, c := throughCutter(t)
	r, err := New(Options{Kubeconfig: path, Namespace: namespace, HelperImage: helper})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var runs [2]runtime.Run
	var outs [2]bytes.Buffer
	for i, script := range []string{"echo begun; sleep 1; echo ended; exit 4", "echo begun; sleep 1; echo ended; sleep 60"} {
		spec := shell(image, script)
		spec.Stdout, spec.Limits.Wall = &outs[i], 2*time.Second
		if runs[i], err = r.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	c.refuse(true)
	back := time.AfterFunc(2*settled, func() { c.refuse(false) })
	defer back.Stop()
	for i, want := range []runtime.Verdict{runtime.NonzeroExit, runtime.Timeout} {
		if result := runs[i].Wait(); result.Verdict != want || outs[i].String() != "begun\nended\n" || result.Wall > 4*time.Second {
			t.Errorf("%q %+v", outs[i].String(), result)
		}
	}
}

// If a user deletes a pod, the cluster is at fault and not the program.
func TestDeletedWhileItRuns(t *testing.T) {
	r := openRuntime(t, Options{Image: tools(t)})
	defer r.Close()
	started, err := r.Start(t.Context(), shell(r.options.Image, "trap '' TERM; sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	n := started.(*run)
	if err := r.pods.delete(t.Context(), n.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if result := started.Wait(); result.Verdict != runtime.InfraError || !strings.Contains(result.Reason, "deleted") {
		t.Errorf("%+v", result)
	}
}

// The next attempt waits until no program of the previous one can run, whichever worker has it.
func TestFence(t *testing.T) {
	image, namespace := tools(t), kubernetestest.Namespace(t)
	before, after := openRuntime(t, Options{Namespace: namespace}), openRuntime(t, Options{Namespace: namespace})
	defer before.Close()
	defer after.Close()
	attempt := func(r *Runtime, number, script string) runtime.Run {
		spec := shell(image, script)
		spec.Labels = runtime.Labels{"execution": "ex_fence", "attempt": number}
		started, err := r.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return started
	}
	const token = "fence-4711"
	first := attempt(before, "1", "trap '' TERM; while :; do sleep 1; done # "+token)
	beside := attempt(after, "1", "sleep 0.1; exit 5") // the same attempt may run several programs
	if result := beside.Wait(); result.ExitCode != 5 || len(runtimetest.Processes(token)) == 0 {
		t.Errorf("%+v", result)
	}
	second := attempt(after, "2", "exit 3")
	if left := runtimetest.Processes(token); len(left) > 0 {
		t.Errorf("attempt 2 has begun while attempt 1 runs: %v", left)
	}
	if result := second.Wait(); result.ExitCode != 3 {
		t.Errorf("%+v", result)
	}
	if result := first.Wait(); result.Verdict != runtime.InfraError {
		t.Errorf("%+v", result)
	}
}

// The output of a program before the kernel killed it is complete, and the kernel's count decides.
func TestOutOfMemory(t *testing.T) {
	r := openRuntime(t, Options{Image: tools(t)})
	defer r.Close()
	const script = "seq 1 20000; tail /dev/zero"
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintln(&want, i+1)
	}
	for range 5 {
		spec := shell(r.options.Image, script)
		spec.Limits.Memory = 32 << 20
		if result, out, _ := finish(t, r, spec); result.Verdict != runtime.OOM || out != want.String() {
			t.Errorf("%d bytes, want %d: %+v", len(out), want.Len(), result)
		}
		spec = shell(r.options.Image, "exit 137")
		if result, _, _ := finish(t, r, spec); result.Verdict != runtime.NonzeroExit || result.ExitCode != 137 {
			t.Errorf("%+v", result)
		}
	}
}

// The cluster learns only a run's name, labels, image and limits.
func TestNothingInTheCluster(t *testing.T) {
	r := openRuntime(t, Options{Image: tools(t)})
	defer r.Close()
	spec := shell(r.options.Image, "read -r x; sleep 60 # of-argv")
	spec.Env = append(spec.Env, "SECRET=of-environment")
	spec.Files = []runtime.File{{Path: "of-files", Content: []byte("of-contents")}}
	spec.Stdin = strings.NewReader("of-stdin\n")
	spec.Labels = runtime.Labels{"execution": "ex_known", "attempt": "1"}
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer started.Wait()
	defer started.Kill("the end")
	pod, err := r.pods.get(t.Context(), started.(*run).name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := pod.Marshal()
	if err != nil || !bytes.Contains(text, []byte("ex_known")) || bytes.Contains(text, []byte("of-")) {
		t.Errorf("%v %q", err, text)
	}
}

// Without a network a program cannot open a network socket, although its pod has an address.
func TestNetworks(t *testing.T) {
	r := openRuntime(t, Options{Image: tools(t), Networks: []string{"pods"}})
	defer r.Close()
	spec := shell(r.options.Image, "exec 3<>/dev/tcp/127.0.0.1/1")
	if _, _, errs := finish(t, r, spec); !strings.Contains(errs, "Address family not supported") {
		t.Errorf("without a network: %s", errs)
	}
	spec.Container.Network = "pods"
	if _, _, errs := finish(t, r, spec); !strings.Contains(errs, "Connection refused") {
		t.Errorf("with a network: %s", errs)
	}
}

func TestContainer(t *testing.T) {
	layer := tools(t)
	files, err := dockertest.Rootfs()
	if err != nil {
		t.Fatal(err)
	}
	variable := kubernetestest.Image(t, "pawl-test/variable", files, map[string]any{"Env": []string{"GOMAXPROCS=9"}})
	r := openRuntime(t, Options{})
	defer r.Close()
	for name, c := range map[string]struct {
		change func(*runtime.Spec)
		script string
		want   string
	}{
		"a user of its own":        {func(*runtime.Spec) {}, "(( $(id -u) >= 1400000000 )) && echo yes", "yes\n"},
		"a user":                   {func(s *runtime.Spec) { s.Container.User = "1500:1501" }, "id -u; id -g", "1500\n1501\n"},
		"a place":                  {func(s *runtime.Spec) { s.Container.WorkDir = "/tmp" }, "pwd; echo x > y && cat y", "/tmp\nx\n"},
		"files":                    {func(s *runtime.Spec) { s.Files = []runtime.File{{Path: "a/b", Content: []byte("file\n")}} }, "pwd; cat a/b", "/work/task\nfile\n"},
		"no variable of process 1": {func(*runtime.Spec) {}, "env | grep -c GOMAXPROCS; true", "0\n"},
		"the image's variable":     {func(s *runtime.Spec) { s.Container.Image = variable }, "echo $GOMAXPROCS", "9\n"},
		"the program's variable":   {func(s *runtime.Spec) { s.Env = append(s.Env, "GOMAXPROCS=7") }, "echo $GOMAXPROCS", "7\n"},
		"nothing of the API":       {func(*runtime.Spec) {}, "env | grep -c KUBERNETES; ls /var/run/secrets 2>/dev/null | wc -l", "0\n0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := shell(layer, c.script)
			c.change(&spec)
			if result, out, errs := finish(t, r, spec); result.Verdict != runtime.OK || out != c.want {
				t.Errorf("%q %s, want %q: %+v", out, errs, c.want, result)
			}
		})
	}
	// If other runs may have the same user, the processes are counted in the container.
	spec := shell(layer, "for ((i=0; i<60; i++)); do sleep 20 & done; wait")
	spec.Container.User, spec.Limits.Pids = "1500", 20
	if result, _, _ := finish(t, r, spec); result.Verdict != runtime.Signal || strings.Join(result.LimitsHit, " ") != runtime.HitPids {
		t.Errorf("%+v", result)
	}
}

func TestRefusedByTheCluster(t *testing.T) {
	image, helper := tools(t), kubernetestest.Helper(t)
	full := kubernetestest.Namespace(t)
	kubernetestest.Do(t, "POST", "/api/v1/namespaces/"+full+"/resourcequotas", map[string]any{"metadata": map[string]any{"name": "pods"},
		"spec": map[string]any{"hard": map[string]any{"pods": "0"}}}, nil)
	for name, c := range map[string]struct {
		options Options
		change  func(*runtime.Container)
		is      error
		say     string
	}{
		"no namespace":    {Options{Namespace: "no-such-namespace"}, func(*runtime.Container) {}, runtime.ErrUnavailable, "--kubernetes-namespace"},
		"quota":           {Options{Namespace: full}, func(*runtime.Container) {}, runtime.ErrUnavailable, "raise the quota"}, // waited for
		"never pulled":    {Options{}, func(c *runtime.Container) { c.Image, c.Pull = "pawl-test/absent:1", runtime.PullNever }, runtime.ErrSpec, "ErrImageNeverPull"},
		"no such syntax":  {Options{}, func(c *runtime.Container) { c.Image = "Not:An:Image" }, runtime.ErrSpec, "InvalidImageName"},
		"no helper image": {Options{HelperImage: "pawl-test/absent:Ä"}, func(*runtime.Container) {}, runtime.ErrSpec, "InvalidImageName"},
		"no such class":   {Options{RuntimeClass: "no-such-class"}, func(*runtime.Container) {}, runtime.ErrUnavailable, "no-such-class"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.options
			o.Kubeconfig = kubernetestest.Cluster(t)
			if o.Namespace == "" {
				o.Namespace = kubernetestest.Namespace(t)
			}
			if o.HelperImage == "" {
				o.HelperImage = helper
			}
			r, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			spec := shell(image, "exit 0")
			c.change(spec.Container)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			started, err := r.Start(ctx, spec)
			if err == nil {
				t.Fatalf("started: %+v", started.Wait())
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v, want %v with %q", err, c.is, c.say)
			}
			if left := kubernetestest.Pods(t, o.Namespace, labelOwner); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A diagnosis runs a pod, and reports that this cluster does not enforce network policies.
func TestDiagnose(t *testing.T) {
	r := openRuntime(t, Options{})
	defer r.Close()
	open, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	_, port, err := net.SplitHostPort(open.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var node struct {
		Status struct{ Addresses []struct{ Address string } }
	}
	kubernetestest.Do(t, "GET", "/api/v1/nodes/pawl-test", nil, &node)
	host := node.Status.Addresses[0].Address
	for where, want := range map[string]string{host + " " + port: "does not hold pods to network policies", host + " 1": "does not reach", " ": "not tried"} {
		address, number, _ := strings.Cut(where, " ")
		t.Setenv("KUBERNETES_SERVICE_HOST", address)
		t.Setenv("KUBERNETES_SERVICE_PORT", number)
		found := map[string]runtime.Finding{}
		for _, f := range r.Diagnose(t.Context()) {
			found[f.What] = f
		}
		if pods := found["pods and exec"]; !pods.OK || !strings.Contains(pods.Say, "was started within") {
			t.Errorf("%+v", pods)
		}
		if policies := found["network policies"]; !strings.Contains(policies.Say, want) || policies.OK == strings.Contains(want, "not hold") {
			t.Errorf("%s: %+v, want %q", where, policies, want)
		}
	}
	eventually(t, "the pods are deleted", func() bool { return len(kubernetestest.Pods(t, r.options.Namespace, labelOwner)) == 0 })
	missing := openRuntime(t, Options{Namespace: "no-such-namespace"})
	defer missing.Close()
	if found := missing.Diagnose(t.Context()); found[0].OK || found[0].Fix == "" {
		t.Errorf("%+v", found[0])
	}
}
