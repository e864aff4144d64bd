// Package wire is what the three parts of a run in a pod say to each other: the worker and the keeper over the stream of an
// exec, the keeper and the pod's process 1 over a socket. A stream that breaks off says nothing about the run: only a State
// does, and output carries its offset, so that a reader goes on where it was.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Version is of the protocol. A keeper of another one is refused.
const Version = 1

// Where things lie in a pod, by the containers that see them.
const (
	Shared   = "/pawl"          // the helper and its socket: writable for the keeper, read-only for the program
	Program  = Shared + "/pod"  // the helper, as the program's container executes it
	Socket   = Shared + "/init" // where process 1 reaches the keeper; closed once it has
	Keep     = "/keep"          // the keeper's own
	Attach   = Keep + "/attach" // where an exec reaches the keeper
	Image    = "/pawl-pod"      // the helper in its image
	WorkRoot = "/work"          // holds the working directory
	Temp     = "/tmp"
)

// Kind says what a frame is.
type Kind byte

// The kinds of frames.
const (
	Hello   Kind = 'H' // worker: Hello, the first frame
	Ping    Kind = 'P' // worker: it is still there; the keeper answers the same
	Order   Kind = 'O' // worker: Order; files and Go follow
	File    Kind = 'F' // worker or process 1: File; its content follows as Data
	Data    Kind = 'D' // of the file before
	Go      Kind = 'G' // worker: start it
	Stdin   Kind = 'I' // worker: input at an offset; empty: its end
	Kill    Kind = 'K' // worker or keeper: end it now
	Fetch   Kind = 'C' // worker: Fetch, after the end; the offset numbers the request and is in every answer
	Fetched Kind = 'Z' // process 1: Fetched, after the files
	Done    Kind = 'Q' // worker: nothing more is wanted
	Status  Kind = 'S' // keeper: State
	Out     Kind = '1' // keeper: stdout at an offset
	Err     Kind = '2' // keeper: stderr at an offset
	Began   Kind = 'B' // process 1: the program executes
	Failed  Kind = 'X' // process 1: Failure
	Ended   Kind = 'E' // process 1: Report
)

// Frame is one message.
type Frame struct {
	Kind   Kind
	Offset int64
	Data   []byte
}

// maxData bounds the data of one frame; Chunk is how much of a stream or a file one carries.
const (
	maxData = 8 << 20
	Chunk   = 32 << 10
)

const headerSize = 1 + 8 + 4

// Append adds one frame, as it is sent, to what is there.
func Append(to []byte, f Frame) []byte {
	to = append(to, byte(f.Kind))
	to = binary.BigEndian.AppendUint64(to, uint64(f.Offset))
	to = binary.BigEndian.AppendUint32(to, uint32(len(f.Data)))
	return append(to, f.Data...)
}

// Write sends one frame, in one write.
func Write(w io.Writer, f Frame) error {
	_, err := w.Write(Append(make([]byte, 0, headerSize+len(f.Data)), f))
	return err
}

// WriteJSON sends a message as one frame.
func WriteJSON(w io.Writer, kind Kind, message any) error {
	f, err := Message(kind, 0, message)
	if err != nil {
		return err
	}
	return Write(w, f)
}

// Read receives one frame.
func Read(r io.Reader) (Frame, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{Kind: Kind(header[0]), Offset: int64(binary.BigEndian.Uint64(header[1:]))}
	size := binary.BigEndian.Uint32(header[9:])
	if size > maxData {
		return Frame{}, fmt.Errorf("frame %q claims %d bytes of data, at most %d are allowed", f.Kind, size, maxData)
	}
	f.Data = make([]byte, size)
	if _, err := io.ReadFull(r, f.Data); err != nil {
		return Frame{}, fmt.Errorf("the stream ended within frame %q: %w", f.Kind, err)
	}
	return f, nil
}

// Decode reads the message of a frame.
func (f Frame) Decode(message any) error {
	if err := json.Unmarshal(f.Data, message); err != nil {
		return fmt.Errorf("frame %q: %w", f.Kind, err)
	}
	return nil
}

// Greeting begins a worker's stream: how much of the output it has.
type Greeting struct {
	Version  int
	Out, Err int64
	// Look asks for one State and nothing else: the stream that serves a worker goes on.
	Look bool `json:",omitempty"`
}

// Command is the program and what bounds it. Env is added to the image's own environment.
type Command struct {
	Argv    []string
	Env     []string
	Dir     string // empty: the image's, or the directory of the files
	Files   bool   // there are input files
	Stdin   bool   // there is an input; else it is empty
	Network bool   // the program may open sockets of the internet
	// CountUser says that no other pod runs as the program's user, so that the kernel can count its processes by that.
	CountUser bool

	Wall, CPU    time.Duration // at which it is ended
	Pids         int
	Output, Disk int64
}

// FileHeader announces a file of Size bytes.
type FileHeader struct {
	Path string
	Mode uint32
	Size int64
}

// Wanted asks for files that the program has left.
type Wanted struct {
	Patterns []string
	Most     int64 // bytes
}

// Refusals ends the answer to a Wanted.
type Refusals struct {
	Refused []string
	Failure string // of the host's; empty: none
}

// Failure is why the program was not started.
type Failure struct {
	Spec bool // what was asked for is at fault
	Text string
}

// Phase is how far a run is.
type Phase string

// The phases, in their order.
const (
	Waiting Phase = "waiting" // process 1 has not started
	Ready   Phase = "ready"   // for an order
	Ordered Phase = "ordered"
	Running Phase = "running"
	Refused Phase = "refused" // Failure says why
	Exited  Phase = "exited"  // Report is there, and all output has been sent
	Lost    Phase = "lost"    // process 1 has died without a report
	Broken  Phase = "broken"  // a stream broke off within an order, or the keeper was started again: nothing can come of it
)

// State is what the keeper knows. It is sent when it changes, after the output that belongs before it.
type State struct {
	Version int
	Epoch   string // of the keeper's process
	Phase   Phase
	Stdin   int64 // bytes of the input that the program's pipe has taken
	Out     int64 // bytes kept in all
	Err     int64
	Failure *Failure `json:",omitempty"`
	Report  *Report  `json:",omitempty"`
}

// Ending is why process 1 has ended the program.
type Ending string

// The endings; empty: the program ended by itself.
const (
	ByWall Ending = "wall"
	ByCPU  Ending = "cpu"
	ByDisk Ending = "disk"
	ByPids Ending = "pids"
	ByKill Ending = "kill"
)

// Report is how the program ended. When it is sent, no process of the program is left.
type Report struct {
	Ending      Ending
	Code        int
	Signal      string // "SIGSEGV"; empty: it exited
	Wall, CPU   time.Duration
	Peak        int64
	OOMKills    int64
	Enforcement string
}

// Message is a frame with a message in it.
func Message(kind Kind, offset int64, message any) (Frame, error) {
	data, err := json.Marshal(message)
	return Frame{kind, offset, data}, err
}
