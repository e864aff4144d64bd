package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// peer is a way to run programs.
type peer interface {
	// run runs a program and returns an error if its result is wrong. Many clients call it at the same time.
	run(ctx context.Context, p program) error
	// cases compiles the C++ program sum and runs it n times, once for each input of sumInput; it returns errors.ErrUnsupported if
	// the peer cannot compile once and run often.
	cases(ctx context.Context, n int) error
	close()
}

var peers = map[string]func(context.Context, options) (peer, error){
	"pawl":          func(ctx context.Context, _ options) (peer, error) { return openPawl(ctx, false) },
	"pawl-warm":     func(ctx context.Context, _ options) (peer, error) { return openPawl(ctx, true) },
	"pool":          openPool,
	"go-judge":      openGoJudge,
	"code_eval":     openCodeEval,
	"sandboxfusion": openSandboxFusion,
}

func names() []string { return slices.Sorted(maps.Keys(peers)) }

func open(ctx context.Context, name string, o options) (peer, error) { return peers[name](ctx, o) }

// sum is the C++ program of the cases: it adds two numbers.
const sum = "#include <iostream>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }\n"

// sumInput is the input of case i of sum, and its expected output.
func sumInput(i int) (stdin, stdout string) {
	return fmt.Sprintf("%d %d\n", i, 2*i), fmt.Sprintf("%d", 3*i)
}

// check compares a program's output with the expected output.
func check(got, want string) error {
	if got = strings.TrimSpace(got); got != want {
		return fmt.Errorf("a program printed %q instead of %q", got, want)
	}
	return nil
}

// post sends v as JSON and decodes the answer into answer.
func post(ctx context.Context, url string, v, answer any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s: %.300s", url, resp.Status, content)
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return fmt.Errorf("%s: %w in %.300q", url, err, content)
	}
	return nil
}

// client keeps a connection for each of the 256 clients; Go's own keeps two for each host.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// service is a server that was started for a measurement.
type service struct {
	url     string
	dir     string // its files, removed with it
	command *exec.Cmd
	exited  chan struct{}
}

// start starts a server whose arguments depend on its address, and waits until a path of it responds.
func start(ctx context.Context, path, program string, args func(address, dir string) []string) (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "evaluators")
	if err != nil {
		return nil, err
	}
	s := &service{url: "http://" + address, dir: dir, command: exec.Command(program, args(address, dir)...), exited: make(chan struct{})}
	var log bytes.Buffer
	s.command.Stdout, s.command.Stderr = &log, &log
	if err := s.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() {
		defer close(s.exited)
		_ = s.command.Wait() // close kills it
	}()
	for {
		if resp, err := client.Get(s.url + path); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		select {
		case <-s.exited:
			return nil, errors.Join(fmt.Errorf("%s ended: %s", program, log.String()), os.RemoveAll(dir))
		case <-ctx.Done():
			s.close()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *service) close() {
	_ = s.command.Process.Kill() // the error means that the server has exited already
	<-s.exited
	_ = os.RemoveAll(s.dir) // a sandbox may still hold its directory
}
