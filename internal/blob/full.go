package blob

import "io"

// ReadFull fills p from r. It returns io.EOF where r has ended before, with what came until then. Every other error is r's own: unlike
// io.ReadFull, which ends so itself, an r that breaks off with io.ErrUnexpectedEOF is not taken for one that has ended.
func ReadFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	if n == len(p) && err == io.EOF {
		err = nil // it comes again
	}
	return n, err
}
