package blob

import "io"

// ReadFull fills p from r. It returns io.EOF if r ended before, with the bytes read so far. Every other error is r's own: if r breaks off
// with io.ErrUnexpectedEOF, that is not taken for its end, while io.ReadFull returns this error for a short end.
func ReadFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	if n == len(p) && err == io.EOF {
		err = nil // the error comes again
	}
	return n, err
}
