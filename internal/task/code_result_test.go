package task

import (
	"testing"

	"github.com/pawl-run/pawl/api"
)

func TestResultStreams(t *testing.T) {
	t.Parallel()
	var r api.CodeResult
	r.Stdout, r.StdoutBase64, r.StdoutTruncated = inline([]byte("häh"[:2]), 4)
	if r.Stdout != "h" || r.StdoutBase64 != nil || !r.StdoutTruncated {
		t.Errorf("a split character must not turn text into base64: %+v", r)
	}
	r.Stderr, r.StderrBase64, r.StderrTruncated = inline([]byte("a\x00b"), 3)
	if r.Stderr != "a\uFFFDb" || string(r.Err()) != "a\x00b" || r.StderrTruncated {
		t.Errorf("bytes that are not text belong in base64, and are no empty text: %+v", r)
	}
}
