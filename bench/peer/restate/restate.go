// Package restate runs the workloads on Restate: its server as a process with its own store, and a service in this
// process that it calls, written with its Go SDK.
package restate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	sdk "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/restatedev/sdk-go/server"

	"github.com/pawl-run/pawl/bench/trial"
)

const startup = 60 * time.Second

type peer struct {
	process *exec.Cmd
	ended   chan struct{}
	stop    context.CancelFunc
	client  *ingress.Client
}

type workflows struct{}

func (workflows) Noop(sdk.Context, int) (int, error) { return 0, nil }

func (workflows) Chain(ctx sdk.Context, n int) (int, error) {
	var err error
	for range 3 {
		if n, err = sdk.Run(ctx, func(sdk.RunContext) (int, error) { return n + 1, nil }); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (workflows) Fanout(ctx sdk.Context, width int) (int, error) {
	one := func(n int) sdk.RunAsyncFuture[int] {
		return sdk.RunAsync(ctx, func(sdk.RunContext) (int, error) { return n, nil })
	}
	width, err := one(width).Result()
	if err != nil {
		return 0, err
	}
	items := make([]sdk.RunAsyncFuture[int], width)
	for i := range items {
		items[i] = one(i)
	}
	for _, item := range items {
		if _, err := item.Result(); err != nil {
			return 0, err
		}
	}
	return one(width).Result()
}

// Open starts the server and registers the service with it.
func Open(ctx context.Context, s trial.Spec) (_ trial.Peer, err error) {
	if s.Server == "" {
		return nil, errors.New("no server program was given")
	}
	var ports [4]int
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	p := &peer{ended: make(chan struct{})}
	serving, stop := context.WithCancel(ctx)
	p.stop = stop
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	service := server.NewRestate().Bind(sdk.Reflect(workflows{})).WithLogger(slog.DiscardHandler, true)
	go func() {
		if err := service.Start(serving, at(ports[0])); err != nil && serving.Err() == nil {
			fmt.Fprintf(os.Stderr, "restate: the service stopped: %v\n", err)
		}
	}()
	p.process = exec.Command(s.Server, "--base-dir", filepath.Join(s.Dir, "restate"), "--node-name", "bench", "--auto-provision", "true")
	p.process.Env = append(os.Environ(), "RESTATE_INGRESS__BIND_ADDRESS="+at(ports[1]), "RESTATE_ADMIN__BIND_ADDRESS="+at(ports[2]),
		"RESTATE_BIND_ADDRESS="+at(ports[3]), "RESTATE_ADVERTISED_ADDRESS=http://"+at(ports[3]), "RESTATE_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=1", "RESTATE_LOG_FILTER=error")
	p.process.Stdout, p.process.Stderr = io.Discard, io.Discard
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	go func() { defer close(p.ended); _ = p.process.Wait() }()
	if err := p.register(ctx, "http://"+at(ports[2])+"/deployments", "http://"+at(ports[0])); err != nil {
		return nil, err
	}
	p.client = ingress.NewClient("http://" + at(ports[1]))
	deadline := time.Now().Add(startup)
	for p.call(ctx, "Noop", 0, 0) != nil {
		if time.Now().After(deadline) {
			return nil, errors.New("the server does not answer calls")
		}
		time.Sleep(50 * time.Millisecond)
	}
	return p, nil
}

// register registers the service with the server, as soon as that listens.
func (p *peer) register(ctx context.Context, admin, service string) error {
	deadline := time.Now().Add(startup)
	for {
		rq, err := http.NewRequestWithContext(ctx, http.MethodPost, admin, bytes.NewBufferString(fmt.Sprintf(`{"uri":%q}`, service)))
		if err != nil {
			return err
		}
		rq.Header.Set("Content-Type", "application/json")
		rs, err := http.DefaultClient.Do(rq)
		if err == nil {
			text, _ := io.ReadAll(rs.Body)
			_ = rs.Body.Close()
			if rs.StatusCode < 300 {
				return nil
			}
			err = fmt.Errorf("%s: %s", rs.Status, text)
		}
		select {
		case <-p.ended:
			return fmt.Errorf("the server ended: %s", p.process.ProcessState)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("register the service: %w", err)
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (p *peer) Close() {
	p.stop()
	if p.process == nil || p.process.Process == nil {
		return
	}
	_ = p.process.Process.Kill() // its data is discarded
	<-p.ended
}

// Run implements trial.Peer.
func (p *peer) Run(ctx context.Context, w trial.Workload) (r trial.Result, err error) {
	switch w.Name {
	case trial.Alone:
		r, err = trial.Loop(ctx, "", w, func(ctx context.Context) error { return p.call(ctx, "Noop", 0, 0) })
	case trial.Chain:
		r, err = trial.Loop(ctx, "", w, func(ctx context.Context) error { return p.call(ctx, "Chain", 0, 3) })
	case trial.Fanout:
		r, err = trial.Loop(ctx, "", w, func(ctx context.Context) error { return p.call(ctx, "Fanout", w.Width, w.Width) })
	default:
		return nil, trial.ErrUnsupported
	}
	if err == nil {
		r[trial.RSS], err = p.memory()
	}
	return r, err
}

func (p *peer) call(ctx context.Context, handler string, input, want int) error {
	got, err := ingress.Service[int, int](p.client, "workflows", handler).Request(ctx, input)
	if err == nil && got != want {
		return fmt.Errorf("the workflow gave %d instead of %d", got, want)
	}
	return err
}

// memory is the server's peak memory in MB; 0 if the system does not report it.
func (p *peer) memory() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, nil
}
