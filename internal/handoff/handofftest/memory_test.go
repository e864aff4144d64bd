package handofftest_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Blobs pass through a broker both ways without being kept in memory: after twelve of them the heap is as large as
// after three. The parallel tests of this package begin after this one.
func TestBlobsInFlatMemory(t *testing.T) {
	const size, most = 5 << 20, 2 * 5 << 20
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i>>9) ^ byte(i*7)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, carry := range map[string]func(*testing.T, *engine.Engine) handoff.Handoff{"redis": overRedis, "rabbitmq": overRabbitMQ} {
		t.Run(name, func(t *testing.T) {
			rig := build(t, carry)
			c := rig.Handoff.(handoff.BlobCarrier)
			session, err := rig.Handoff.Open(t.Context(), handoff.Session{Name: "blobs", Queues: []string{flow.DefaultQueue}, Slots: 1})
			if err != nil {
				t.Fatal(err)
			}
			rig.Submit(t, flow.KindNoop, nil)
			work, err := rig.Handoff.Take(t.Context(), session, 1)
			if err != nil || len(work) != 1 {
				t.Fatalf("%+v, %v", work, err)
			}
			var early uint64
			for i := range 12 {
				if i == 3 {
					early = heap()
				}
				q := handoff.BlobQuery{Execution: work[0].Execution, Attempt: work[0].Attempt, Name: fmt.Sprintf("files/%s/%d/%d", work[0].Execution, work[0].Attempt, i)}
				if n, err := c.PutBlob(t.Context(), session, q, bytes.NewReader(content)); err != nil || n != size {
					t.Fatalf("put: %d bytes, %v", n, err)
				}
				r, err := c.GetBlob(t.Context(), session, q)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, r)
				if err != nil || n != size {
					t.Fatalf("get: %d bytes, %v", n, err)
				}
				_ = r.Close() // it was read to its end
			}
			if late := heap(); late > early+most {
				t.Errorf("the heap had %d bytes after 3 blobs of %d and has %d after 12", early, size, late)
			}
		})
	}
}
