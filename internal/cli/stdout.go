package cli

import (
	"io"
	"os"
	"sync/atomic"
)

// stdout is the process's standard output. It keeps the first error: commands print without looking at errors, so on a full disk pawl get
// would end with exit code 0 and an empty file. If the reader of a pipe has gone, as with | head, the process ends by SIGPIPE.
type stdout struct {
	*os.File
	err atomic.Pointer[error]
}

func (s *stdout) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	if err != nil {
		s.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

// WriteString and ReadFrom replace those of the file, which io.WriteString and io.Copy prefer to Write.
func (s *stdout) WriteString(text string) (int, error) { return s.Write([]byte(text)) }

func (s *stdout) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{s}, r)
}
