package row

import "github.com/pawl-run/pawl/internal/flow"

// AppendError appends an error; nil is nothing.
func AppendError(b []byte, e *flow.Error) []byte {
	if e == nil {
		return b
	}
	w := writer{b: b}
	w.text(e.Code)
	w.text(e.Message)
	w.bytes(e.Details)
	return w.b
}

// AppendErrorCode appends what the encoding of every error with the code begins with, and of no other error.
func AppendErrorCode(b []byte, code string) []byte {
	w := writer{b: b}
	w.text(code)
	return w.b
}

// DecodeErrorCode reads the code from what AppendError wrote, or from no more than AppendErrorCode would have written.
func DecodeErrorCode(b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	d := reader{b: b}
	return d.text(), d.err
}

// DecodeError reads what AppendError wrote.
func DecodeError(b []byte) (*flow.Error, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := reader{b: b}
	e := &flow.Error{Code: d.text(), Message: d.text(), Details: d.bytes()}
	return e, d.err
}
