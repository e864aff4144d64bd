package s3_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// A sweep aborts uploads that began more than a day ago, and nothing else: no new ones, none of other programs, and none without a time. An
// upload that cannot be aborted does not keep the sweep from others.
func TestSweep(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	c, bucket, prefix := s3test.Client(t, place)
	for _, name := range []string{"new~", "old~", "old/1~", "old/stays~", "old/2~", "old/timeless~", "old-of-another"} {
		if _, err := c.NewMultipartUpload(t.Context(), bucket, prefix+name, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The service's clock cannot be changed, so its answer is.
	one := regexp.MustCompile(`(?s)<Upload>.*?</Upload>`)
	s := open(t, through(t, place, &proxy{
		instead: func(r *http.Request) (int, string) {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/stays~") {
				return http.StatusForbidden, "AccessDenied"
			}
			return 0, ""
		},
		rewrite: func(r *http.Request, body []byte) []byte {
			if !r.URL.Query().Has("uploads") {
				return body
			}
			return one.ReplaceAllFunc(body, func(b []byte) []byte {
				switch {
				case bytes.Contains(b, []byte("timeless")):
					return initiated.ReplaceAll(b, nil)
				case bytes.Contains(b, []byte("old")):
					return initiated.ReplaceAll(b, []byte("<Initiated>2020-01-01T00:00:00Z</Initiated>"))
				}
				return b
			})
		},
	}))
	if err := s.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "old/stays~: ") || !strings.Contains(err.Error(), "s3:AbortMultipartUpload") {
		t.Errorf("an upload could not be given up: %v", err)
	}
	left, err := c.ListMultipartUploads(t.Context(), bucket, prefix, "", "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, u := range left.Uploads {
		keys = append(keys, strings.TrimPrefix(u.Key, prefix))
		if err := c.AbortMultipartUpload(t.Context(), bucket, u.Key, u.UploadID); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(keys)
	if want := []string{"new~", "old-of-another", "old/stays~", "old/timeless~"}; !slices.Equal(keys, want) {
		t.Errorf("%q are left, want %q", keys, want)
	}
}

// A list of uploads that does not end is an error.
func TestSweepStops(t *testing.T) {
	t.Parallel()
	for name, marker := range map[string]string{"the same again": "<NextKeyMarker>k~</NextKeyMarker>", "from the beginning": ""} {
		var lists atomic.Int64
		s := open(t, through(t, s3test.URL(t), &proxy{rewrite: func(r *http.Request, body []byte) []byte {
			if !r.URL.Query().Has("uploads") {
				return body
			}
			next := marker
			if n := lists.Add(1); n == 1 {
				next = "<NextKeyMarker>k~</NextKeyMarker>"
			} else if n > 10 {
				return []byte(`<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>`)
			}
			return fmt.Appendf(nil, `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>%s</ListMultipartUploadsResult>`, next)
		}}))
		if err := s.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "does not go on") || lists.Load() > 3 {
			t.Errorf("%s: after %d lists: %v", name, lists.Load(), err)
		}
	}
}
