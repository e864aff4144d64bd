package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/programtest"
)

// startWorker starts `pawl worker` for a server; it ends with the test.
func (p *serverProcess) startWorker(t *testing.T, args ...string) {
	t.Helper()
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	w := exec.Command(path, append([]string{"worker", "--server", p.client.BaseURL(), "--state-dir", t.TempDir(), "--runtime", "process"}, args...)...)
	w.Stderr = t.Output()
	if err := programtest.Start(w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.Process.Signal(syscall.SIGTERM)
		_ = w.Wait()
	})
}

// workers waits until n workers are connected, and returns their labels by name.
func (p *serverProcess) workers(t *testing.T, n int) map[string]map[string]string {
	t.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		all, err := p.client.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == n {
			labels := map[string]map[string]string{}
			for _, w := range all {
				name := w.Name
				if w.Embedded {
					name = "server"
				}
				labels[name] = w.Labels
			}
			return labels
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("there are %d workers, not %d", len(all), n)
		}
	}
}

// ranOn returns the name of the worker that got an execution.
func (p *serverProcess) ranOn(t *testing.T, id string) string {
	t.Helper()
	for _, e := range p.history(t, id) {
		if e.Type == "provisioning" {
			var by struct{ Worker string }
			if err := json.Unmarshal(e.Data, &by); err != nil {
				t.Fatalf("%s: %v", e.Data, err)
			}
			return by.Worker
		}
	}
	t.Fatalf("no worker was given %s", id)
	return ""
}

// Workers with different labels, in the server's process and in two others, get the executions that select their labels. An execution that
// matches no worker waits, says which labels it needs, and goes to the worker that comes with them.
func TestLabelsOfWorkers(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), "--runtime", "process", "--labels", "zone=home")
	p.startWorker(t, "--name", "a", "--labels", "gpu=a100,zone=eu")
	p.startWorker(t, "--name", "b", "--labels", "gpu=t4,zone=eu")
	if got := p.workers(t, 3); got["a"]["gpu"] != "a100" || got["b"]["zone"] != "eu" || got["server"]["zone"] != "home" {
		t.Errorf("labels %v", got)
	}
	submit := func(labels map[string]string) string {
		t.Helper()
		x, err := p.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "bash", Source: "true"}, WorkerLabels: labels})
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	wanted := map[string]string{}
	for range 10 {
		wanted[submit(map[string]string{"gpu": "a100"})] = "a"
		wanted[submit(map[string]string{"gpu": "t4", "zone": "eu"})] = "b"
		wanted[submit(map[string]string{"zone": "home"})] = ""
		wanted[submit(map[string]string{"zone": "eu"})] = "a or b"
		wanted[submit(nil)] = "any"
	}
	for id, want := range wanted {
		if x := p.wait(t, id); x.Status != api.Completed {
			t.Fatalf("%+v", x)
		}
		on := p.ranOn(t, id)
		switch {
		case want == "any", want == "a or b" && (on == "a" || on == "b"), want == "" && on != "a" && on != "b", on == want:
		default:
			t.Errorf("%s ran on %q, not on %q", id, on, want)
		}
	}

	waits := submit(map[string]string{"gpu": "h100", "zone": "eu"})
	why, err := p.client.Why(t.Context(), waits)
	if err != nil || why.Waiting != "worker" || why.WorkerLabels["gpu"] != "h100" || !strings.Contains(why.Summary, "no live worker") ||
		!strings.Contains(strings.Join(why.Facts, "\n"), "it lacks label gpu=h100") {
		t.Errorf("%+v, %v", why, err)
	}
	queues, err := p.client.Queues(t.Context())
	if err != nil || len(queues) != 2 || queues[0].Slots == 0 || queues[1].WorkerLabels["gpu"] != "h100" || queues[1].Ready != 1 || queues[1].Workers != 0 {
		t.Errorf("%+v, %v", queues, err)
	}
	p.startWorker(t, "--name", "c", "--labels", "gpu=h100,zone=eu")
	if x := p.wait(t, waits); x.Status != api.Completed || x.WorkerLabels["gpu"] != "h100" || x.Queue != "default" {
		t.Errorf("%+v", x)
	}
	if on := p.ranOn(t, waits); on != "c" {
		t.Errorf("it ran on %s", on)
	}
}

var labelsBlock = regexp.MustCompile("(?s)## Labels\n\n```sh\n(.*?)```")

// The commands of the guide to labels work as written.
func TestLabelsAsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/replicas.md")
	if err != nil {
		t.Fatal(err)
	}
	block := labelsBlock.FindSubmatch(text)
	if block == nil {
		t.Fatal("the guide has no such commands")
	}
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	p := serve(t, t.TempDir(), "--no-worker")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eu\ntrap 'kill $(jobs -p); wait' EXIT\n"+string(block[1]))
	var out bytes.Buffer
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"), "PAWL_SERVER="+p.client.BaseURL(),
		"PAWL_STATE_DIR="+t.TempDir(), "PAWL_RUNTIME=process")
	cmd.Stdout, cmd.Stderr = &out, t.Output()
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"trained\n", "big", "gpu=a100,zone=eu"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}
