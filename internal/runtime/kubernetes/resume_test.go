//go:build unix

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// marked makes the test process the one that is killed.
const marked = "PAWL_TEST_KUBERNETES_ABANDONS"

type abandoned struct {
	Namespace, Worker string
	Spec              runtime.Spec
}

// TestAbandons is the earlier process for the other tests: it starts a run and is killed.
func TestAbandons(t *testing.T) {
	var a abandoned
	if json.Unmarshal([]byte(os.Getenv(marked)), &a) != nil {
		t.Skip("this is the process that the tests of resuming start and kill: it does nothing in a run of its own")
	}
	a.Spec.Stdout, a.Spec.Stderr = os.Stdout, os.Stdout
	r := openRuntime(t, Options{Namespace: a.Namespace, Worker: a.Worker})
	started, err := r.Start(t.Context(), a.Spec)
	if err != nil {
		t.Fatal(err)
	}
	started.Wait()
}

// abandon starts a run in another process, which is killed when the run has written until.
func abandon(t *testing.T, namespace string, spec runtime.Spec, until string) {
	t.Helper()
	kubernetestest.Helper(t)
	env, err := json.Marshal(abandoned{namespace, "test", spec})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "^TestAbandons$")
	process.Env = append(os.Environ(), marked+"="+string(env))
	stdout, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for buffer := make([]byte, 4096); !bytes.Contains(got.Bytes(), []byte(until)); {
		n, err := stdout.Read(buffer)
		got.Write(buffer[:n])
		if err != nil {
			t.Fatalf("%v: %q", err, got.String())
		}
	}
	_ = process.Process.Kill()
	_, _ = io.Copy(io.Discard, stdout)
	_ = process.Wait() // killed
}

func lastingSpec(image, name, script string) runtime.Spec {
	spec := shell(image, script)
	spec.Name, spec.Lasting = name, true
	spec.Labels = runtime.Labels{"execution": name, "attempt": "1"}
	return spec
}

// again opens the runtime as the worker's next process does, and resumes all runs that have outlived the earlier process. They must be
// those of want.
func again(t *testing.T, namespace string, want ...string) *Runtime {
	t.Helper()
	r := openRuntime(t, Options{Namespace: namespace, Worker: "test"})
	t.Cleanup(func() { _ = r.Close() })
	kept, err := r.Outlived(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range kept {
		if l["attempt"] != "1" || len(l) != 2 {
			t.Errorf("labels %v", l)
		}
		names = append(names, l["execution"])
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("left: %v, want %v", names, want)
	}
	r.Settle(kept)
	return r
}

// noted is a writer that can be read while it is written.
type noted struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *noted) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(p)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// A program that runs on without its worker is taken up again, while it runs and after it has ended: all its output arrives, byte for
// byte, its files are collected, and its end is its own.
func TestResume(t *testing.T) {
	image, namespace := tools(t), kubernetestest.Namespace(t)
	for name, c := range map[string]struct {
		script string
		until  string
		ends   bool // before the run is taken up
		kill   bool
		limits runtime.Limits
		want   runtime.Verdict
		out    string
	}{
		"ex_runs":     {`printf 'one\r\n\377\0x'; echo err >&2; sleep 8; echo kept > out; printf end; exit 3`, "x", false, false, runtime.Limits{}, runtime.NonzeroExit, "one\r\n\377\x00xend"},
		"ex_hasended": {`printf 'one\r\n'; sleep 1; echo err >&2; echo kept > out; printf end; exit 3 # ` + "hasended-1", "one", true, false, runtime.Limits{}, runtime.NonzeroExit, "one\r\nend"},
		"ex_toolong":  {`printf one; echo err >&2; echo kept > out; sleep 1000`, "one", false, false, runtime.Limits{Wall: 6 * time.Second}, runtime.Timeout, "one"},
		"ex_killed":   {`printf one; echo err >&2; echo kept > out; sleep 1000`, "one", false, true, runtime.Limits{}, runtime.Killed, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := lastingSpec(image, name, c.script)
			spec.Container.WorkDir = runtime.ContainerFiles
			spec.Limits = c.limits.Or(spec.Limits)
			abandon(t, namespace, spec, c.until)
			if c.ends {
				eventually(t, "it has ended", func() bool { return len(runtimetest.Processes("hasended-1")) == 0 })
			}
			r := again(t, namespace, name)
			var out, errs noted
			spec.Stdout, spec.Stderr, spec.Collect, spec.CollectInto = &out, &errs, []string{"out"}, t.TempDir()
			run, err := r.Resume(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.sweep(t.Context(), time.Now().Add(2*takeUpWithin)); err != nil {
				t.Error(err)
			}
			if c.kill {
				run.Kill("the end")
			}
			result := run.Wait()
			if result.Verdict != c.want || len(result.Files) != 1 || c.want == runtime.NonzeroExit && result.ExitCode != 3 {
				t.Errorf("%+v", result)
			}
			if out.String() != c.out || errs.String() != "err\n" || result.StdoutBytes != int64(len(c.out)) {
				t.Errorf("%q and %q", out.String(), errs.String())
			}
			eventually(t, "the pod is deleted", func() bool { return len(kubernetestest.Pods(t, namespace, labelOwner)) == 0 })
		})
	}
}

// A run that is not lasting is not taken up, and other pods of the worker's earlier processes are deleted at once.
func TestNotResumed(t *testing.T) {
	image, namespace := tools(t), kubernetestest.Namespace(t)
	spec := lastingSpec(image, "ex_notlasting", "echo one; sleep 1000")
	spec.Lasting = false
	abandon(t, namespace, spec, "one")
	other := openRuntime(t, Options{Namespace: namespace, Worker: "another"})
	defer other.Close()
	other.Settle(nil)
	if n, err := other.sweep(t.Context(), time.Now()); err != nil || n != 0 {
		t.Errorf("another worker swept up %d, %v", n, err)
	}
	r := again(t, namespace)
	eventually(t, "it is removed", func() bool { return len(kubernetestest.Pods(t, namespace, labelOwner)) == 0 })
	if _, err := r.Resume(t.Context(), spec); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("resumed: %v", err)
	}
}
