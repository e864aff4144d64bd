// Package wire is the protocol between the three parts of a run in a pod: the worker and the keeper talk over the stream of
// an exec, the keeper and the pod's process 1 over a socket. A stream that breaks off says nothing about the run: only a
// State does, and output carries its offset, so that a reader continues where it stopped.
package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Version is the protocol's version. A peer of another version is refused, on either side.
const Version = 4

// The places of files in a pod, by the containers that see them.
const (
	Shared   = "/pawl"          // the helper and its socket: writable for the keeper, read-only for the program
	Program  = Shared + "/pod"  // the helper, as the program's container executes it
	Socket   = Shared + "/init" // where process 1 connects to the keeper; closed afterwards
	Keep     = "/keep"          // the keeper's own
	Attach   = Keep + "/attach" // where an exec connects to the keeper
	Image    = "/pawl-pod"      // the helper in its image
	WorkRoot = "/work"          // holds the working directory
	Temp     = "/tmp"
)

type Kind byte

const (
	Hello   Kind = 'H' // worker: Hello, the first frame
	Ping    Kind = 'P' // worker: still alive; the keeper answers with the same
	Order   Kind = 'O' // worker: Order; files and Go follow
	File    Kind = 'F' // worker or process 1: File; its content follows as Data
	Data    Kind = 'D' // of the file before
	Go      Kind = 'G' // worker: start it
	Stdin   Kind = 'I' // worker: input at an offset; without data: its end
	Kill    Kind = 'K' // worker or keeper: end the program; an offset is the grace in nanoseconds after a SIGTERM
	Fetch   Kind = 'C' // worker: Fetch, after the end; the offset numbers the request and is in every answer
	Fetched Kind = 'Z' // process 1: Fetched, after the files
	Done    Kind = 'Q' // worker: the pod may end
	Status  Kind = 'S' // keeper: State
	Out     Kind = '1' // keeper: stdout at an offset
	Err     Kind = '2' // keeper: stderr at an offset
	Began   Kind = 'B' // process 1: the program executes
	Failed  Kind = 'X' // process 1: Failure
	Ended   Kind = 'E' // process 1: Report
)

type Frame struct {
	Kind   Kind
	Offset int64
	Data   []byte
}

// maxData bounds the data of one frame; Chunk is the amount of a stream or a file in one frame.
const (
	maxData = 8 << 20
	Chunk   = 32 << 10
)

const headerSize = 1 + 8 + 4

// Append appends an encoded frame to a buffer.
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

func WriteMessage(w io.Writer, kind Kind, m Message) error { return Write(w, Pack(kind, 0, m)) }

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
