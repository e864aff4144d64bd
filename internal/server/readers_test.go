package server

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// BenchmarkEventReaders holds 9,000 open event streams, of one execution and of one each. It measures the server's memory per stream, and
// the processor time per stream in a second in which nothing happens.
func BenchmarkEventReaders(b *testing.B) {
	const readers = 9_000 // both ends are in this process, under the usual limit of 20,000 open files
	for name, executions := range map[string]int{"of one execution": 1, "of one execution each": readers} {
		b.Run(name, func(b *testing.B) {
			h := start(b, Options{})
			ids := make([]string, executions)
			batch := make([]api.Submission, executions)
			for i := range batch {
				batch[i] = api.Submission{Action: "sleep", Input: []byte(`{"for":"10h"}`)}
			}
			for at := 0; at < executions; at += 1000 {
				r, err := h.client.SubmitBatch(b.Context(), batch[at:min(at+1000, executions)])
				if err != nil || r.Refused > 0 {
					b.Fatalf("%+v, %v", r, err)
				}
				for i, x := range r.Results {
					ids[at+i] = x.ID
				}
			}
			memory, conns := memoryInUse(), make([]net.Conn, readers)
			b.Cleanup(func() {
				for _, c := range conns {
					if c != nil {
						_ = c.Close()
					}
				}
			})
			for i := range conns {
				c, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", strings.TrimPrefix(h.url, "http://"))
				if err != nil {
					b.Fatal(err)
				}
				conns[i] = c
				fmt.Fprintf(c, "GET /api/v1/executions/%s/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", ids[i%executions])
				for lines := bufio.NewScanner(c); ; {
					if !lines.Scan() {
						b.Fatal(lines.Err())
					}
					if strings.HasPrefix(lines.Text(), "event: ") {
						break
					}
				}
			}
			memory = memoryInUse() - memory
			began, used := time.Now(), processorTime(b)
			for b.Loop() {
				time.Sleep(10 * time.Second) // of idle streams, whose processor time is measured
			}
			b.ReportMetric(float64(memory)/readers, "B/reader")
			b.ReportMetric(float64((processorTime(b)-used).Microseconds())/time.Since(began).Seconds()/readers, "CPU-µs/s/reader")
		})
	}
}

// memoryInUse is the memory of live objects and of stacks.
func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
