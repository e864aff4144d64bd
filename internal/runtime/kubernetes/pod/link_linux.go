package pod

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// link is the stream of one worker. A newer one replaces it.
type link struct {
	keeper *keeper
	conn   *os.File
	write  sync.Mutex
	buffer []byte // for outgoing frames; guarded by write
	sent   [2]int64
	gone   bool // guarded by the keeper

	answering atomic.Bool // an answer to a ping is being sent
}

func (l *link) send(f wire.Frame) error {
	l.write.Lock()
	defer l.write.Unlock()
	l.buffer = wire.Append(l.buffer[:0], f) // one buffer for all frames: a keeper has little memory, and sends hundreds of MB
	_, err := l.conn.Write(l.buffer)
	return err
}

// serve handles one worker until its stream ends.
func (k *keeper) serve(l *link) {
	defer l.conn.Close()
	_ = l.conn.SetReadDeadline(time.Now().Add(silence))
	first, err := wire.Read(l.conn)
	var greeting wire.Greeting
	if err != nil || first.Kind != wire.Hello || first.Decode(&greeting) != nil {
		return
	}
	if greeting.Version != wire.Version {
		l.answer(wire.Refusal())
		return
	}
	if greeting.Look {
		k.mu.Lock()
		state := k.state
		k.mu.Unlock()
		l.answer(wire.Pack(wire.Status, 0, &state))
		return
	}
	k.mu.Lock()
	if greeting.Out < 0 || greeting.Out > k.streams[0].size || greeting.Err < 0 || greeting.Err > k.streams[1].size {
		k.mu.Unlock()
		return
	}
	if before := k.link; before != nil {
		before.gone = true
		_ = before.conn.Close()
	}
	l.sent = [2]int64{greeting.Out, greeting.Err}
	k.link, k.contact = l, time.Now()
	k.changed.Broadcast()
	k.mu.Unlock()
	go l.tell()
	ordering := false
	for {
		_ = l.conn.SetReadDeadline(time.Now().Add(silence))
		f, err := wire.Read(l.conn)
		if err == nil {
			err = k.obey(l, f, &ordering)
		}
		if err != nil {
			break
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	l.gone = true
	if k.link == l {
		k.link = nil
	}
	if ordering { // half an order: the program was not started, and will not be
		k.change(func(s *wire.State) { s.Phase = wire.Broken })
		_ = k.init.Close()
	}
	k.changed.Broadcast()
}

// answer sends a worker one frame, and lets the worker end the stream: data sent just before the end of an exec may be lost.
func (l *link) answer(f wire.Frame) {
	if wire.Write(l.conn, f) != nil {
		return
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(silence))
	_, _ = io.Copy(io.Discard, l.conn)
}

// obey carries out a frame of a worker. ordering is true between an order and the frame that starts it.
func (k *keeper) obey(l *link, f wire.Frame, ordering *bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.contact = time.Now()
	if l.gone {
		return os.ErrClosed
	}
	if k.init == nil && f.Kind != wire.Ping && f.Kind != wire.Done {
		return fmt.Errorf("frame %q before process 1 is there", f.Kind)
	}
	switch f.Kind {
	case wire.Ping:
		// A worker that does not read now, because the receiver of its output is slow, is still alive: its pings are read
		// while the answer to one waits.
		if l.answering.CompareAndSwap(false, true) {
			go func() {
				_ = l.send(f)
				l.answering.Store(false)
			}()
		}
		return nil
	case wire.Order:
		var c wire.Command
		if err := f.Decode(&c); err != nil {
			return err
		}
		if k.state.Phase != wire.Ready {
			return fmt.Errorf("a second order")
		}
		*ordering = true
		k.limit = c.Output + 1
		if !c.Stdin {
			k.input.end()
		}
		k.change(func(s *wire.State) { s.Phase = wire.Ordered })
	case wire.File, wire.Data:
		if !*ordering {
			return fmt.Errorf("a file without an order")
		}
	case wire.Go:
		if !*ordering {
			return fmt.Errorf("a start without an order")
		}
		*ordering = false
	case wire.Stdin:
		return k.input.take(f)
	case wire.Kill:
	case wire.Fetch:
		if k.state.Phase != wire.Exited {
			return fmt.Errorf("files are asked for before the end")
		}
	case wire.Done:
		k.finish()
		return nil
	default:
		return fmt.Errorf("unknown frame %q", f.Kind)
	}
	init := k.init
	k.mu.Unlock() // process 1 may be busy
	err := wire.Write(init, f)
	k.mu.Lock()
	return err
}

// tell sends the output and then the state, whenever either changes. Only the change to Running is sent before the
// pending output: a worker that reads the output slowly would otherwise not know for so long whether its order was
// carried out, or whether a broken stream is restored.
func (l *link) tell() {
	k := l.keeper
	buffer := make([]byte, wire.Chunk)
	told, runs := -1, false
	for {
		k.mu.Lock()
		which := -1
		var size int64
		for {
			if l.gone {
				k.mu.Unlock()
				return
			}
			if !runs && k.state.Phase == wire.Running {
				runs = true
				break
			}
			for i := range k.streams {
				if k.streams[i].size > l.sent[i] {
					which, size = i, k.streams[i].size
				}
			}
			if which >= 0 || told != k.version {
				break
			}
			k.changed.Wait()
		}
		state := k.state
		if which < 0 {
			told = k.version
		}
		k.mu.Unlock()
		var err error
		if which < 0 {
			now := state // a copy, so that the state is allocated only where it is sent
			l.write.Lock()
			err = wire.WriteMessage(l.conn, wire.Status, &now)
			l.write.Unlock()
		} else {
			err = l.pass(which, size, buffer)
		}
		if err != nil {
			_ = l.conn.Close() // the reader then ends the link
			return
		}
	}
}

func (l *link) pass(which int, size int64, buffer []byte) error {
	part := buffer[:min(int64(len(buffer)), size-l.sent[which])]
	if _, err := l.keeper.streams[which].file.ReadAt(part, l.sent[which]); err != nil {
		return err
	}
	kind := [2]wire.Kind{wire.Out, wire.Err}[which]
	if err := l.send(wire.Frame{Kind: kind, Offset: l.sent[which], Data: part}); err != nil {
		return err
	}
	l.sent[which] += int64(len(part))
	return nil
}

// input carries the program's stdin. A worker keeps input that has not been taken, and sends it again after a break.
type input struct {
	keeper *keeper
	pipe   *os.File
	parts  [][]byte // waiting for the program; this and the following fields are guarded by the keeper
	held   int      // bytes of parts, and of the part that is being written
	next   int64    // the next expected offset
	ended  bool
}

// Window bounds the input on its way to the program.
const Window = 8 * wire.Chunk

func newInput(pipe *os.File, k *keeper) *input {
	in := &input{keeper: k, pipe: pipe}
	go in.carry()
	return in
}

// take accepts the next input; the caller holds the keeper's lock.
func (in *input) take(f wire.Frame) error {
	if f.Offset > in.next {
		return fmt.Errorf("input at offset %d, expected at %d", f.Offset, in.next)
	}
	if in.ended {
		return nil
	}
	if len(f.Data) == 0 {
		if f.Offset == in.next {
			in.end()
		}
		return nil
	}
	fresh := f.Data[min(in.next-f.Offset, int64(len(f.Data))):]
	if len(fresh) == 0 {
		return nil
	}
	if in.held+len(fresh) > Window {
		return fmt.Errorf("more input than the window of %d bytes", Window)
	}
	in.parts, in.held = append(in.parts, fresh), in.held+len(fresh)
	in.next += int64(len(fresh))
	in.keeper.changed.Broadcast()
	return nil
}

// end marks the end of the input; the caller holds the keeper's lock.
func (in *input) end() {
	in.ended = true
	in.keeper.changed.Broadcast()
}

// carry writes the input to the program. Input that the program does not read is consumed all the same.
func (in *input) carry() {
	k, broken := in.keeper, false
	k.mu.Lock()
	for {
		for len(in.parts) == 0 && !in.ended {
			k.changed.Wait()
		}
		if len(in.parts) == 0 {
			break
		}
		part := in.parts[0]
		in.parts[0], in.parts = nil, in.parts[1:]
		k.mu.Unlock()
		if !broken {
			_, err := in.pipe.Write(part)
			broken = err != nil
		}
		k.mu.Lock()
		in.held -= len(part)
		k.change(func(s *wire.State) { s.Stdin += int64(len(part)) })
	}
	k.mu.Unlock()
	_ = in.pipe.Close()
}
