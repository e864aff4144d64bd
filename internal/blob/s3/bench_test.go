package s3_test

import (
	"bytes"
	"flag"
	"fmt"
	"hash/crc64"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// BenchmarkPutGet compares the store's put with the library's put of a known length.
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

var large = flag.Int64("s3.large", 1<<30, "how many bytes BenchmarkLarge puts and reads")

// BenchmarkLarge puts a blob from a reader, reads it again, and reports the largest memory of the process, which is the benchmark's if it
// runs alone.
func BenchmarkLarge(b *testing.B) {
	s := open(b, s3test.URL(b))
	size := *large
	b.SetBytes(2 * size)
	for b.Loop() {
		put, got := crc64.New(crc64.MakeTable(crc64.ECMA)), crc64.New(crc64.MakeTable(crc64.ECMA))
		if n, err := s.Put(b.Context(), "large", io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), size), put)); err != nil || n != size {
			b.Fatal(n, err)
		}
		r, err := s.Get(b.Context(), "large", 0)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(got, r); err != nil || n != size || got.Sum64() != put.Sum64() {
			b.Fatalf("%d bytes came, of %d, %v", n, size, err)
		}
		_ = r.Close()
		if err := s.Remove(b.Context(), "large"); err != nil {
			b.Fatal(err)
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

// BenchmarkRemove removes 400 prefixes without blobs, as retention does, among 50,000 blobs.
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
