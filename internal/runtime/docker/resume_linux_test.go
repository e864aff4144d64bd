package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
)

// marked makes the test process the one that is killed.
const marked = "PAWL_TEST_DOCKER_ABANDONS"

type abandoned struct {
	Worker string
	Spec   runtime.Spec
}

// TestAbandons is the earlier process for the other tests: it starts a run and is killed.
func TestAbandons(t *testing.T) {
	var a abandoned
	if json.Unmarshal([]byte(os.Getenv(marked)), &a) != nil {
		t.Skip("this is the process that the tests of resuming start and kill: it does nothing in a run of its own")
	}
	a.Spec.Stdout, a.Spec.Stderr = os.Stdout, os.Stdout
	r := openRuntime(t, Options{Worker: a.Worker})
	started, err := r.Start(t.Context(), a.Spec)
	if err != nil {
		t.Fatal(err)
	}
	started.Wait()
}

// abandon starts a run in another process, which is killed when the run has written until.
func abandon(t *testing.T, worker string, spec runtime.Spec, until string) {
	t.Helper()
	dockertest.Image(t, dockertest.Engine(t), testImage)
	env, err := json.Marshal(abandoned{worker, spec})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

func lastingSpec(name, script string) runtime.Spec {
	return runtime.Spec{Name: name, Labels: runtime.Labels{"execution": name, "attempt": "1"}, Lasting: true,
		Argv:      []string{"sh", "-c", script},
		Container: &runtime.Container{Image: testImage, WorkDir: runtime.ContainerFiles}, Limits: runtime.Limits{Wall: time.Minute}}
}

// theOne is the only container of an execution.
func theOne(t *testing.T, name string) client.ContainerInspectResult {
	t.Helper()
	engine := dockertest.Client(t, dockertest.Engine(t))
	all, err := engine.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", labelPrefix+"execution="+name)})
	if err != nil || len(all.Items) != 1 {
		t.Fatalf("%d containers, %v", len(all.Items), err)
	}
	c, err := engine.ContainerInspect(t.Context(), all.Items[0].ID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// let creates a file in the working directory of a container.
func let(t *testing.T, name, file string) {
	t.Helper()
	for _, m := range theOne(t, name).Container.Mounts {
		if m.Destination == volumeDir {
			if err := os.WriteFile(filepath.Join(m.Source, "task", file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("it has no working directory")
}

func ended(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" has ended", func() bool { return theOne(t, name).Container.State.Status == container.StateExited })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
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

func left(t *testing.T, name string) []string {
	return dockertest.Containers(t, dockertest.Engine(t), labelPrefix+"execution="+name)
}

// again is the next process of a worker, which keeps all that it may.
func again(t *testing.T, worker string, want ...string) *Runtime {
	t.Helper()
	r := openRuntime(t, Options{Worker: worker})
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

const until = `while [ ! -e go ]; do sleep 0.05; done; `

// A program that runs on without its worker is taken up again: all its output arrives, byte for byte, its files are collected, and its
// end is its own.
func TestResumeRunning(t *testing.T) {
	t.Parallel()
	const name, worker = "ex_resumed", "test/resumed"
	long := strings.Repeat("0123456789", 5000)
	piece := strings.Repeat("piece by ", 2<<14/9+1)[:2<<14] // the engine's log cuts lines
	spec := lastingSpec(name, `printf 'one\n\377\000x\r\n\n'; printf '`+long+`'; echo err >&2; echo first
		printf '`+piece+`\n\n'; `+until+`echo two; echo more >&2; echo kept > out; printf end; exit 3`)
	abandon(t, worker, spec, piece[len(piece)-99:]+"\n\n")
	r := again(t, worker, name)
	if _, err := r.sweep(t.Context()); err != nil || len(left(t, name)) != 1 {
		t.Fatalf("what is to be taken up was swept up: %v", err)
	}
	var out, errs noted
	spec.Stdout, spec.Stderr, spec.Collect, spec.CollectInto = &out, &errs, []string{"out"}, t.TempDir()
	run, err := r.Resume(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "what it had written before", func() bool { return strings.HasSuffix(out.String(), "\n\n") })
	let(t, name, "go")
	result := run.Wait()
	if result.Verdict != runtime.NonzeroExit || result.ExitCode != 3 || len(result.Files) != 1 || result.Wall < 50*time.Millisecond || result.CPU == 0 {
		t.Errorf("%+v", result)
	}
	if want := "one\n\xff\x00x\r\n\n" + long + "first\n" + piece + "\n\ntwo\nend"; out.String() != want || result.StdoutBytes != int64(len(want)) {
		t.Errorf("%d bytes %.60q, want %d", result.StdoutBytes, out.String(), len(want))
	}
	if errs.String() != "err\nmore\n" {
		t.Errorf("%q", errs.String())
	}
	if all := left(t, name); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// A program that has ended meanwhile is also taken up.
func TestResumeEnded(t *testing.T) {
	t.Parallel()
	const name, worker = "ex_endedmeanwhile", "test/ended"
	spec := lastingSpec(name, `echo one; `+until+`echo two; echo kept > out; printf end`)
	abandon(t, worker, spec, "one")
	let(t, name, "go")
	ended(t, name)
	r := again(t, worker, name)
	var out noted
	spec.Stdout, spec.Collect, spec.CollectInto = &out, []string{"out"}, t.TempDir()
	run, err := r.Resume(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if result := run.Wait(); result.Verdict != runtime.OK || out.String() != "one\ntwo\nend" || len(result.Files) != 1 || result.Wall > 50*time.Second {
		t.Errorf("%q %+v", out.String(), result)
	}
	if all := left(t, name); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// Limits apply as if the worker had not been replaced.
func TestResumeLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		limits runtime.Limits
		ends   bool // before the run is taken up
		want   runtime.Verdict
	}{
		"ex_toolong":   {"echo one; sleep 1000", runtime.Limits{Wall: 3 * time.Second}, false, runtime.Timeout},
		"ex_waslonger": {"echo one; sleep 1.5", runtime.Limits{Wall: time.Second}, true, runtime.Timeout},
		"ex_talks":     {"echo one; " + until + "seq 100000; sleep 1000", runtime.Limits{Output: 10_000}, false, runtime.OutputLimit},
		"ex_killed2":   {"echo one; sleep 1000", runtime.Limits{}, false, runtime.Killed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := "test/" + name
			spec := lastingSpec(name, c.script)
			spec.Limits = c.limits.Or(spec.Limits)
			abandon(t, worker, spec, "one")
			let(t, name, "go")
			if c.ends {
				ended(t, name)
			}
			r := again(t, worker, name)
			run, err := r.Resume(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == runtime.Killed {
				run.Kill("the end")
			}
			if result := run.Wait(); result.Verdict != c.want {
				t.Errorf("%+v", result)
			}
			if all := left(t, name); len(all) > 0 {
				t.Errorf("left: %v", all)
			}
		})
	}
}

// A run that may not have ended by itself is not taken up, and neither is one that is not lasting; both are removed.
func TestNotResumed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, name string, spec *runtime.Spec){
		"ex_shot": func(t *testing.T, name string, _ *runtime.Spec) {
			engine := dockertest.Client(t, dockertest.Engine(t))
			if _, err := engine.ContainerKill(t.Context(), theOne(t, name).Container.ID, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
				t.Fatal(err)
			}
			ended(t, name)
		},
		"ex_notlasting": func(_ *testing.T, _ string, spec *runtime.Spec) { spec.Lasting = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := "test/" + name
			spec := lastingSpec(name, "echo one; sleep 1000")
			if !strings.HasSuffix(name, "shot") {
				change(t, name, &spec)
			}
			abandon(t, worker, spec, "one")
			if strings.HasSuffix(name, "shot") {
				change(t, name, &spec)
			}
			r := again(t, worker)
			eventually(t, "it is removed", func() bool { return len(left(t, name)) == 0 })
			if _, err := r.Resume(t.Context(), spec); !errors.Is(err, runtime.ErrUnavailable) {
				t.Errorf("resumed: %v", err)
			}
		})
	}
}

// A run that was to be taken up and cannot be must not run on without a worker: its attempt is over.
func TestResumeFails(t *testing.T) {
	t.Parallel()
	const name, worker = "ex_paused", "test/paused"
	spec := lastingSpec(name, "echo one; sleep 1000")
	abandon(t, worker, spec, "one")
	r := again(t, worker, name)
	engine := dockertest.Client(t, dockertest.Engine(t))
	if _, err := engine.ContainerPause(t.Context(), theOne(t, name).Container.ID, client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), spec); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("resumed: %v", err)
	}
	if all := left(t, name); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// While its worker may come back no other worker removes a run; afterwards any worker does.
func TestOthersSpareWhatMayBeTakenUp(t *testing.T) {
	t.Parallel()
	const name, worker = "ex_spared", "test/spared"
	spec := lastingSpec(name, "echo one; sleep 1000")
	abandon(t, worker, spec, "one")
	other := openRuntime(t, Options{Worker: "test/other"})
	defer other.Close()
	other.Settle(nil)
	if _, err := other.sweep(t.Context()); err != nil || len(left(t, name)) != 1 {
		t.Fatalf("swept up: %v", err)
	}
	next := openRuntime(t, Options{Worker: worker})
	defer next.Close()
	if _, err := next.sweep(t.Context()); err != nil || len(left(t, name)) != 1 {
		t.Fatalf("its own worker swept it up before it was settled: %v", err)
	}
	other.options.Returns = func(w string) bool { return w != worker }
	if _, err := other.sweep(t.Context()); err != nil || len(left(t, name)) != 0 {
		t.Errorf("nobody comes for it, and it was not swept up: %v", err)
	}
}
