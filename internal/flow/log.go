package flow

import "time"

const (
	// MostChunk bounds, in bytes, a chunk that is received from elsewhere, because a chunk is read as a whole. Workers make chunks of 64 KB.
	MostChunk = 1 << 20
	// MostOffset is the largest offset in a stream that is received from elsewhere: plus a size, it stays within 64 bits.
	MostOffset = 1 << 62
)

// LogChunk is a piece of one attempt's output.
type LogChunk struct {
	Execution ID        `json:"execution"`
	Attempt   int       `json:"attempt"`
	Seq       int64     `json:"seq"`    // 1, 2, 3 … over all streams of the attempt
	Stream    string    `json:"stream"` // "stdout", "stderr" or "log"
	Offset    int64     `json:"offset"` // of the first byte, in its stream
	At        time.Time `json:"at"`
	Data      []byte    `json:"data,omitempty"`
	Blob      string    `json:"blob,omitempty"` // name of the blob with the bytes, if Data does not have them
	Size      int64     `json:"size"`           // bytes of the chunk, wherever they are
	// Prompt asks for an immediate notification of other processes, because a person or a program may be waiting to answer the chunk. It is
	// not stored.
	Prompt bool `json:"prompt,omitempty"`
}
