package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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

// serverProcess is one life of `pawl server`.
type serverProcess struct {
	cmd     *exec.Cmd
	client  *client.Client
	address string
	exited  chan error
}

var serving = regexp.MustCompile(`serving on (http://\S+)`)

// serve starts `pawl server` on a state directory and waits until it answers.
func serve(t *testing.T, dir string, args ...string) *serverProcess {
	t.Helper()
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	p := &serverProcess{exited: make(chan error, 1)}
	p.cmd = exec.Command(path, append([]string{"server", "--listen", "127.0.0.1:0", "--state-dir", dir, "--allow-degraded"}, args...)...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := programtest.Start(p.cmd); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
			fmt.Fprintln(t.Output(), "server:", lines.Text())
		}
	}()
	go func() {
		<-read
		p.exited <- p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	select {
	case p.address = <-address:
		if p.client, err = client.New(p.address); err != nil {
			t.Fatal(err)
		}
	case err := <-p.exited:
		t.Fatalf("pawl server ended: %v", err)
	case <-time.After(3 * time.Minute):
		t.Fatal("pawl server does not answer")
	}
	return p
}

// kill ends the process as a power cut would.
func (p *serverProcess) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	select {
	case err := <-p.exited:
		p.exited <- err
	case <-time.After(10 * time.Second):
	}
}

// stop ends the process the polite way and returns how it ended.
func (p *serverProcess) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	err := <-p.exited
	p.exited <- err
	return err
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
