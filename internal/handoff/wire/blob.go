package wire

import (
	"errors"
	"io"
)

// Stored is the answer to a call that puts a blob.
type Stored struct {
	Size int64 `json:"size"`
}

// Source is the caller's reader of a blob. It remembers its own error, to tell it from errors of the transfer.
type Source struct {
	io.Reader
	Err error
}

func (s *Source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Err = err
	}
	return n, err
}
