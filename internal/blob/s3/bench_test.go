package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// BenchmarkPutGet has the library's own put of a known length beside the store's.
func BenchmarkPutGet(b *testing.B) {
	place := s3test.URL(b)
	s := open(b, place)
	c, bucket, prefix := s3test.Client(b, place)
	for _, size := range []int{4 << 10, 200 << 10, 5 << 20, 50 << 20} {
		content := make([]byte, size)
		b.Run(fmt.Sprintf("put/%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := s.Put(b.Context(), "bench", bytes.NewReader(content)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("raw/%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := c.Client.PutObject(b.Context(), bucket, prefix+"raw~", bytes.NewReader(content), int64(size), minio.PutObjectOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("get/%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				r, err := s.Get(b.Context(), "bench", 0)
				if err == nil {
					_, err = io.Copy(io.Discard, r)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLargePut puts 1 GB from a reader and reports the largest memory that the process has had, which is this benchmark's when it
// runs alone.
func BenchmarkLargePut(b *testing.B) {
	s := open(b, s3test.URL(b))
	const size = 1 << 30
	b.SetBytes(size)
	for b.Loop() {
		if n, err := s.Put(b.Context(), "large", io.LimitReader(rand.NewChaCha8([32]byte{}), size)); err != nil || n != size {
			b.Fatal(n, err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("the memory is measured on Linux only")
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kb float64
	if _, err := fmt.Sscanf(peak, "%f kB", &kb); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(kb/1024, "MB-peak")
}

// BenchmarkRemove removes 400 prefixes that name nothing, as retention does, among 50,000 blobs.
func BenchmarkRemove(b *testing.B) {
	s := open(b, s3test.URL(b))
	names := make([]string, 50_000)
	for i := range names {
		names[i] = fmt.Sprintf("files/ex_%05d/1/0", i)
	}
	fill(b, s, names)
	var prefixes []string
	for i := range 200 {
		prefixes = append(prefixes, fmt.Sprintf("files/ex_2%04d-", i), fmt.Sprintf("logs/ex_2%04d-", i))
	}
	for b.Loop() {
		if err := s.Remove(b.Context(), prefixes...); err != nil {
			b.Fatal(err)
		}
	}
}
