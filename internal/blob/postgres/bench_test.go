package postgres_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

func BenchmarkPutGet(b *testing.B) {
	s := open(b, "")
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
