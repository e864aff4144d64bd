package row

import "github.com/pawl-run/pawl/internal/flow"

// AppendError appends an error, or nothing for nil.
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

// AppendErrorCode appends the bytes with which the encodings of all errors with this code, and only of these, begin.
func AppendErrorCode(b []byte, code string) []byte {
	w := writer{b: b}
	w.text(code)
	return w.b
}

// DecodeErrorCode decodes the code from the output of AppendError, or of AppendErrorCode alone.
func DecodeErrorCode(b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	d := reader{b: b}
	return d.text(), d.err
}

// DecodeError decodes the output of AppendError.
func DecodeError(b []byte) (*flow.Error, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := reader{b: b}
	e := &flow.Error{Code: d.text(), Message: d.text(), Details: d.bytes()}
	return e, d.err
}
