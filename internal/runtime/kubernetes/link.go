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
	over   chan struct{} // closed when the stream has ended
	err    error         // why; set before over is closed
	busy   atomic.Bool   // take is handling a frame; the reader may wait for it, and the stream with it
	heard  atomic.Int64  // when the last frame came, in nanoseconds; before the first frame a moment chosen so that firstAnswer applies
}

const (
	pingEvery = 5 * time.Second
	// silence is how long a stream may be silent before the worker opens another.
	silence = 15 * time.Second
	// firstAnswer is the same bound before a keeper's first answer: on a node that starts 20 pods at once an exec itself
	// may take longer than silence, and each exec that the worker gave up was followed by another.
	firstAnswer = 45 * time.Second
)

// dial executes the helper beside the keeper and passes every frame to take, in order, until take returns an
// error. within bounds the wait for the first frame.
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
		// The library waits without a limit for the response to its request, even after ctx has ended, and a node whose
		// kubelet is stuck never responds.
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
		_ = from.Close() // frames that have arrived are handled first
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
	go func() { // a goroutine, because the pipe accepts nothing before the stream is open
		_ = l.sendMessage(wire.Hello, &greeting)
	}()
	return l, nil
}

// receive passes frames to take. It returns take's error.
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
	tick := time.Tick(pingEvery)
	for {
		select {
		case <-l.over:
			return
		case <-tick:
		}
		if time.Since(l.lastHeard()) > silence {
			l.cancel()
			return
		}
		go func() { _ = l.send(wire.Frame{Kind: wire.Ping}) }() // a stream that accepts nothing is found by its silence
	}
}

// lastHeard is when the last frame of the keeper came; now, while a frame is being handled.
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

// close ends the stream and waits for its end.
func (l *link) close() {
	l.cancel()
	<-l.over
}

// limited keeps the first bytes that are written to it.
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
