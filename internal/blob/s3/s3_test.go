package s3_test

import (
	"net/url"
	"testing"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/blobtest"
	"github.com/pawl-run/pawl/internal/blob/s3"
	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

func unset(string) string { return "" }

func open(t testing.TB, u *url.URL) *s3.Store {
	t.Helper()
	at, err := s3.Parse(u.String(), unset)
	if err != nil {
		t.Fatal(err)
	}
	s, err := s3.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s3test.URL(t) // skips once
	blobtest.Exercise(t, func(t *testing.T) blob.Store { return open(t, s3test.URL(t)) })
}
