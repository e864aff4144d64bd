package submit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// oneAttempt forwards the standard output of one attempt. An attempt may be lost after part of its output was forwarded: the
// next attempt's output is compared with that part, byte for byte, and only the rest is forwarded. If it differs, as for a
// program that prints the time, nothing more is forwarded, and failure reports that.
type oneAttempt struct {
	to     io.Writer
	passed hash.Hash // of the forwarded bytes
	bytes  int64     // of that
	from   int       // the attempt that wrote the last forwarded bytes

	attempt int       // that is being read
	same    hash.Hash // of the part of attempt's output that an earlier attempt wrote already
	left    int64     // bytes of that part that are still to come
	differs bool
}

func newOneAttempt(to io.Writer) *oneAttempt {
	return &oneAttempt{to: to, passed: sha256.New()}
}

// begin prepares for the output of an attempt, unless it is the current one.
func (o *oneAttempt) begin(attempt int) {
	if o.attempt != attempt {
		o.attempt, o.same, o.left = attempt, sha256.New(), o.bytes
	}
}

// write forwards output that is not a repetition.
func (o *oneAttempt) write(chunk *api.LogChunk) error {
	o.begin(chunk.Attempt)
	b := chunk.Bytes()
	if o.left > 0 {
		n := min(o.left, int64(len(b)))
		o.same.Write(b[:n])
		o.left, b = o.left-n, b[n:]
		o.differs = o.differs || o.left == 0 && !bytes.Equal(o.same.Sum(nil), o.passed.Sum(nil))
	}
	if o.differs || len(b) == 0 {
		return nil
	}
	o.passed.Write(b)
	o.bytes, o.from = o.bytes+int64(len(b)), chunk.Attempt
	_, err := o.to.Write(b)
	return err
}

// failure returns an error if the forwarded output is not that of the attempt with which the execution ended.
func (o *oneAttempt) failure(end *api.Execution) error {
	o.begin(end.Attempt)
	if !o.differs && (o.left == 0 || end.Status != api.Completed) {
		return nil
	}
	return fmt.Errorf("attempt %d was lost after %s of its standard output had been printed, and attempt %d wrote something else, which is not printed: "+
		"pawl logs %s --attempt %d --stream stdout prints all of it", o.from, output.Plural(int(o.bytes), "byte", "bytes"), end.Attempt, end.ID, end.Attempt)
}
