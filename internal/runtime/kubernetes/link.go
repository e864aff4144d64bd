package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
	"github.com/pawl-run/pawl/internal/runtime/runs"
)

// link is one stream to a run's keeper. It may break off at any time, which says nothing about the run.
type link struct {
	write  sync.Mutex
	to     io.Writer
	cancel context.CancelFunc
	over   chan struct{} // closed when it has ended
	err    error         // why; set before over is closed
	busy   atomic.Bool   // a frame is being taken: its reader may wait, and the stream with it
	heard  atomic.Int64  // when the last frame came, in nanoseconds; before the first a moment that is silence before it is to come
}

const (
	pingEvery = 5 * time.Second
	// silence is how long a stream may say nothing until another one is tried.
	silence = 15 * time.Second
	// firstAnswer is the same for a keeper that has never answered: on a node that starts 20 pods at once an exec itself
	// may take more than silence, and each one that was given up was followed by another.
	firstAnswer = 45 * time.Second
)

// dial executes the helper beside the keeper and gives every frame to take, in order, until that returns an error.
// within is how long the first one may take to come.
func (r *Runtime) dial(pod string, greeting wire.Greeting, within time.Duration, take func(wire.Frame) error) (*link, error) {
	url := r.pods.rest.Post().Resource("pods").Namespace(r.options.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&v1.PodExecOptions{Container: keeperName, Command: []string{wire.Image, "attach"}, Stdin: true, Stdout: true, Stderr: true},
			parameters).URL()
	executor, err := remotecommand.NewWebSocketExecutor(r.config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		// The library waits for the answer to its request without an end, also when ctx has ended: that of a node whose
		// kubelet is stuck never comes.
		GotConn: func(c httptrace.GotConnInfo) { context.AfterFunc(ctx, func() { _ = c.Conn.Close() }) },
	}))
	in, to := io.Pipe()
	out, from := io.Pipe()
	var said limited
	l := &link{to: to, cancel: cancel, over: make(chan struct{})}
	l.heard.Store(time.Now().Add(within - silence).UnixNano())
	var taken sync.WaitGroup
	var takeErr error
	taken.Go(func() {
		takeErr = l.receive(out, take)
		_ = out.CloseWithError(runs.ErrClosed)
		cancel()
	})
	go func() {
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: from, Stderr: &said})
		if err == nil {
			err = errors.New("the stream ended")
		}
		if text := strings.TrimSpace(said.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		_ = from.Close() // what has come is taken first
		_ = in.CloseWithError(runs.ErrClosed)
		taken.Wait()
		cancel()
		if takeErr != nil {
			err = takeErr
		}
		l.err = err
		close(l.over)
	}()
	go l.ping()
	go func() { // its own goroutine: the pipe takes nothing before the stream is there
		_ = l.sendMessage(wire.Hello, &greeting)
	}()
	return l, nil
}

// receive gives frames to take. Its error is the one of take.
func (l *link) receive(from io.Reader, take func(wire.Frame) error) error {
	for {
		f, err := wire.Read(from)
		if err != nil {
			return nil
		}
		l.heard.Store(time.Now().UnixNano())
		if f.Kind == wire.Ping {
			continue
		}
		l.busy.Store(true)
		err = take(f)
		l.busy.Store(false)
		l.heard.Store(time.Now().UnixNano())
		if err != nil {
			return err
		}
	}
}

// ping keeps the stream alive and ends one that is silent.
func (l *link) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-tick.C:
		}
		if time.Since(l.lastHeard()) > silence {
			l.cancel()
			return
		}
		go func() { _ = l.send(wire.Frame{Kind: wire.Ping}) }() // a stream that takes nothing is noticed by its silence
	}
}

// lastHeard is when the keeper has said something last; now, while what it has said is being taken.
func (l *link) lastHeard() time.Time {
	if l.busy.Load() {
		return time.Now()
	}
	return time.Unix(0, l.heard.Load())
}

func (l *link) send(f wire.Frame) error {
	l.write.Lock()
	defer l.write.Unlock()
	return wire.Write(l.to, f)
}

func (l *link) sendMessage(kind wire.Kind, message wire.Message) error {
	l.write.Lock()
	defer l.write.Unlock()
	return wire.WriteMessage(l.to, kind, message)
}

// close ends the stream and waits for that.
func (l *link) close() {
	l.cancel()
	<-l.over
}

// limited keeps the beginning of what is written to it.
type limited struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p[:min(len(p), 1000-l.text.Len())])
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
