package kubernetes

import (
	"io"
	"sync"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// window bounds the input that is sent and not yet confirmed.
const window = 4 * wire.Chunk

// feeder sends the program's input. It keeps input that the keeper has not confirmed, and sends it again over the next stream.
type feeder struct {
	mu     sync.Mutex
	wake   *sync.Cond
	link   *link
	base   int64  // offset of data in the input
	data   []byte // what is not confirmed
	sent   int64  // offset up to which input was sent over the link
	over   bool   // the input has ended
	told   bool   // and that was sent
	closed bool
}

func newFeeder() *feeder {
	f := &feeder{}
	f.wake = sync.NewCond(&f.mu)
	return f
}

// begin starts to send the content of from. It ends with the input or with the run; a Read that never returns keeps its
// goroutine and nothing else.
func (f *feeder) begin(from io.Reader, l *link) {
	f.link = l
	go f.read(from)
	go f.send()
}

func (f *feeder) read(from io.Reader) {
	buffer := make([]byte, wire.Chunk)
	for {
		n, err := from.Read(buffer)
		f.mu.Lock()
		f.data = append(f.data, buffer[:n]...)
		f.over = err != nil
		f.wake.Broadcast()
		for len(f.data) >= window-wire.Chunk && !f.closed {
			f.wake.Wait()
		}
		stop := f.over || f.closed
		f.mu.Unlock()
		if stop {
			return
		}
	}
}

func (f *feeder) send() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.closed {
		end := f.base + int64(len(f.data))
		switch {
		case f.sent < end:
			part := append([]byte(nil), f.data[f.sent-f.base:min(f.sent-f.base+wire.Chunk, int64(len(f.data)))]...)
			f.pass(wire.Frame{Kind: wire.Stdin, Offset: f.sent, Data: part})
		case f.over && !f.told:
			f.told = true
			f.pass(wire.Frame{Kind: wire.Stdin, Offset: end})
		default:
			f.wake.Wait()
		}
	}
}

// pass sends a frame; input that a broken stream has not delivered is sent again over the next.
func (f *feeder) pass(frame wire.Frame) {
	f.sent = frame.Offset + int64(len(frame.Data))
	l := f.link
	f.mu.Unlock()
	_ = l.send(frame)
	f.mu.Lock()
}

// taken notes the offset up to which the program's pipe has taken input.
func (f *feeder) taken(offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := min(offset-f.base, int64(len(f.data))); n > 0 {
		f.base += n
		f.data = f.data[n:]
	}
	f.sent = max(f.sent, f.base)
	f.wake.Broadcast()
}

// again sends unconfirmed input over a new stream.
func (f *feeder) again(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.link, f.sent, f.told = l, f.base, false
	f.wake.Broadcast()
}

func (f *feeder) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.wake.Broadcast()
}
