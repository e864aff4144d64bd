package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// serverProcess is one process of `pawl server`.
type serverProcess struct {
	*programtest.Process
	client  *client.Client
	address string
}

var serving = regexp.MustCompile(`serving on (http://\S+)`)

// serve starts `pawl server` on a state directory and waits until it answers.
func serve(t *testing.T, dir string, args ...string) *serverProcess {
	t.Helper()
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	p := &serverProcess{}
	cmd := exec.Command(path, append([]string{"server", "--listen", "127.0.0.1:0", "--state-dir", dir, "--allow-degraded"}, args...)...)
	p.Process, p.address = programtest.Announced(t, cmd, serving)
	if p.client, err = client.New(p.address); err != nil {
		t.Fatal(err)
	}
	return p
}

// stop sends SIGTERM to the process and returns how it ended.
func (p *serverProcess) stop() error {
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// wait waits for the end of an execution.
func (p *serverProcess) wait(t *testing.T, id string) *api.Execution {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	x, err := p.client.Wait(ctx, id)
	if err != nil {
		t.Fatalf("wait for %s: %v", id, err)
	}
	return x
}

// history checks that an execution's events are numbered without gaps and returns them.
func (p *serverProcess) history(t *testing.T, id string) []api.Event {
	t.Helper()
	var all []api.Event
	for {
		page, err := p.client.Events(t.Context(), id, int64(len(all)), 1000)
		if err != nil {
			t.Fatalf("events of %s: %v", id, err)
		}
		for _, e := range page.Events {
			if e.Seq != int64(len(all)+1) {
				t.Fatalf("%s: event %d has number %d", id, len(all)+1, e.Seq)
			}
			all = append(all, e)
		}
		if len(page.Events) < 1000 {
			return all
		}
	}
}

func codeResult(t *testing.T, x *api.Execution) api.CodeResult {
	t.Helper()
	var r api.CodeResult
	if err := json.Unmarshal(x.Output, &r); err != nil {
		t.Fatalf("%s (%s, %v) has output %.200s: %v", x.ID, x.Status, x.Error, x.Output, err)
	}
	return r
}
