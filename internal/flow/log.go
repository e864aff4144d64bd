package flow

import "time"

const (
	// MostChunk is the most bytes of a chunk that is taken from others, which is read as a whole. Workers make chunks of 64 KB.
	MostChunk = 1 << 20
	// MostOffset is the largest offset in a stream that is taken from others: with a size behind it, it stays within 64 bits.
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
	Blob      string    `json:"blob,omitempty"` // name of the blob that holds the bytes, when Data does not
	Size      int64     `json:"size"`           // bytes of the chunk, wherever they are
	// Prompt asks that other processes be told of the chunk at once, since a person or a program may be waiting to answer
	// it. It is not stored.
	Prompt bool `json:"prompt,omitempty"`
}
