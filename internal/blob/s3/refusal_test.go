package s3_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// A 404 from a router that has no service at the moment is not the service's answer that the blob does not exist.
func TestForeignNotFound(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	s := open(t, through(t, s3test.URL(t), &proxy{choose: func(r *http.Request) fault {
		if away.Load() && !r.URL.Query().Has("uploads") { // the start of an upload in parts
			return foreign
		}
		return none
	}}))
	if _, err := s.Put(t.Context(), "x", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	for what, try := range map[string]func() error{
		"put":          func() error { _, err := s.Put(t.Context(), "x", strings.NewReader("y")); return err },
		"put in parts": func() error { _, err := s.Put(t.Context(), "x", bytes.NewReader(content(1, 9<<20))); return err },
		"get":          func() error { _, err := get(s, "x", 0); return err },
		"remove":       func() error { return s.Remove(t.Context(), "x") },
	} {
		if err := try(); !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v, want that the blobs are unavailable", what, err)
		}
	}
	away.Store(false)
	if got, err := get(s, "x", 0); err != nil || string(got) != "x" {
		t.Errorf("read %q, %v", got, err)
	}
}

// An error that the service or the operator can fix later is ErrUnavailable until then, and says what to change if that is known. A put
// never returns ErrNotFound.
func TestRefusedWhileRunning(t *testing.T) {
	t.Parallel()
	type said struct {
		status int
		code   string
	}
	var say atomic.Pointer[said]
	var at atomic.Pointer[string] // parameter of the refused requests; "": all
	s := open(t, through(t, s3test.URL(t), &proxy{instead: func(r *http.Request) (int, string) {
		now := say.Load()
		if now == nil || *at.Load() != "" && (!r.URL.Query().Has(*at.Load()) || r.Method == http.MethodDelete) {
			return 0, ""
		}
		return now.status, now.code
	}}))
	for _, c := range []struct {
		said
		want  string
		parts string
	}{
		{said{http.StatusForbidden, "InvalidAccessKeyId"}, "check AWS_ACCESS_KEY_ID", ""},
		{said{http.StatusBadRequest, "ExpiredToken"}, "check AWS_ACCESS_KEY_ID", "partNumber"},
		{said{http.StatusForbidden, "AccessDenied"}, "allow s3:ListBucket", "uploads"},
		{said{http.StatusForbidden, "RequestTimeTooSkewed"}, "set this one", ""},
		{said{http.StatusNotFound, "NoSuchBucket"}, "make it", ""},
		{said{http.StatusForbidden, "QuotaExceeded"}, "QuotaExceeded", ""},
		{said{http.StatusBadRequest, "IncompleteBody"}, "IncompleteBody", ""},
		{said{http.StatusBadRequest, "BadDigest"}, "BadDigest", "partNumber"},
		{said{http.StatusBadRequest, "XAmzContentSHA256Mismatch"}, "SHA256", ""},
		{said{http.StatusConflict, "OperationAborted"}, "OperationAborted", ""},
		{said{http.StatusNotFound, "NoSuchKey"}, "NoSuchKey", ""},
		{said{http.StatusNotFound, "NoSuchUpload"}, "NoSuchUpload", "partNumber"},
		{said{http.StatusBadRequest, "InvalidPart"}, "InvalidPart", "uploadId"},
	} {
		say.Store(nil)
		if _, err := s.Put(t.Context(), "x", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		at.Store(&c.parts)
		say.Store(&c.said)
		size := 10
		if c.parts != "" {
			size = 9 << 20
		}
		_, err := s.Put(t.Context(), "x", bytes.NewReader(content(1, size)))
		if !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, blob.ErrNotFound) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("put: %s: %v, want that the blobs are unavailable and %q", c.code, err, c.want)
		}
		if c.parts != "" || strings.HasPrefix(c.code, "NoSuchKey") {
			continue
		}
		if _, err := get(s, "x", 0); !errors.Is(err, blob.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("get: %s: %v, want that the blobs are unavailable and %q", c.code, err, c.want)
		}
		if err := s.Remove(t.Context(), "x"); !errors.Is(err, blob.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("remove: %s: %v, want that the blobs are unavailable and %q", c.code, err, c.want)
		}
	}
}
