package worker

import (
	"fmt"
	"os"
	"time"

	"github.com/pawl-run/pawl/internal/task"
)

// spoolLoad is the most bytes that one call takes from a spool, a multiple of chunkMost.
const spoolLoad = 8 * chunkMost

// spool keeps unsent output of a program on the local disk. The bytes are read in the order in which they were written. The file has no
// name, so that the kernel frees it when the process dies.
type spool struct {
	dir     string
	most    int64 // its capacity in bytes; 0: it is not used
	file    *os.File
	written int64
	read    int64
	times   []time.Time // of the first byte of each chunkMost bytes
}

func (s *spool) waiting() int64 { return s.written - s.read }

func (s *spool) room() int64 { return s.most - s.waiting() }

// add appends p, and returns how many of its bytes are kept.
func (s *spool) add(p []byte) (int, error) {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, ".output-")
		if err != nil {
			return 0, fmt.Errorf("%w: %w", task.ErrSpool, err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return 0, fmt.Errorf("%w: %w", task.ErrSpool, err)
		}
	}
	n, err := s.file.WriteAt(p, s.written)
	s.written += int64(n)
	for int64(len(s.times))*chunkMost < s.written {
		s.times = append(s.times, time.Now())
	}
	if err != nil {
		return n, fmt.Errorf("%w: %w", task.ErrSpool, err)
	}
	return n, nil
}

// load removes the oldest bytes from the spool and returns them, with the time at which each chunkMost of them began. If the disk fails, it
// returns a note of the same length instead, so that later offsets stay right.
func (s *spool) load() ([]byte, []time.Time, error) {
	p, times := make([]byte, min(spoolLoad, s.waiting())), s.times[s.read/chunkMost:]
	n, err := s.file.ReadAt(p, s.read)
	if n == len(p) {
		err = nil
	} else {
		copy(p, note(int64(len(p)), "of the log could not be read from the worker's disk"))
	}
	if s.read += int64(len(p)); s.waiting() == 0 {
		s.close()
	}
	return p, times, err
}

// close frees the disk.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // the file has no name any more
	}
	s.file, s.written, s.read, s.times = nil, 0, 0, nil
}
