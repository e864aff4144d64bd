package archives_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/archives"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// BenchmarkArchive exports and unpacks executions, each a tree with a history, an output and a log. The bar is 20,000 a minute.
func BenchmarkArchive(b *testing.B) {
	for name, rig := range enginetest.Stores {
		b.Run(name, func(b *testing.B) {
			from := rig(b)
			worker := from.Worker()
			worker.Serve(enginetest.Echo)
			var chunks []flow.LogChunk
			for n := 0; n < b.N; n += 1000 {
				subs := make([]engine.Submission, min(1000, b.N-n))
				for i := range subs {
					subs[i] = engine.Submission{Action: "noop", Input: fmt.Appendf(nil, `{"n":%d,"text":"some words that are given to it"}`, i), Labels: map[string]string{"run": "1"}}
				}
				out, err := from.Engine.Submit(from.Ctx, subs)
				if err != nil {
					b.Fatal(err)
				}
				for _, s := range out {
					from.Ended(s.Execution)
					chunks = append(chunks, flow.LogChunk{Execution: s.Execution, Attempt: 1, Seq: 1, Stream: "stdout", At: time.Now(), Data: []byte("a line of a log\n"), Size: 16})
				}
			}
			if err := from.Store.AppendLogs(from.Ctx, chunks); err != nil {
				b.Fatal(err)
			}
			var whole bytes.Buffer
			began := time.Now()
			if err := from.Engine.Archives().Export(from.Ctx, &whole, archive.Manifest{}, archives.Exporting{Filter: store.Filter{Labels: map[string]string{"run": "1"}}}); err != nil {
				b.Fatal(err)
			}
			exported, size := time.Since(began), whole.Len()
			to := rig(b)
			b.ResetTimer()
			began = time.Now()
			out, err := to.Engine.Archives().Unpack(to.Ctx, &whole)
			if err != nil || out.Trees != b.N {
				b.Fatalf("%+v, %v", out, err)
			}
			b.ReportMetric(float64(b.N)/exported.Minutes(), "exported/min")
			b.ReportMetric(float64(size)/float64(b.N), "bytes/execution")
			b.ReportMetric(float64(b.N)/time.Since(began).Minutes(), "unpacked/min")
		})
	}
}

// BenchmarkArchiveOfAWideWorkflow unpacks one workflow with many tasks.
func BenchmarkArchiveOfAWideWorkflow(b *testing.B) {
	for name, rig := range enginetest.Stores {
		b.Run(name, func(b *testing.B) {
			from := rig(b)
			from.Worker().Serve(func(handoff.Assignment) (string, *flow.Error) { return "1", nil })
			from.Define(fmt.Sprintf("name: wide\ntasks:\n  each: {foreach: \"${{ lists.range(%d) }}\", action: noop, with: {n: \"${{ item }}\"}}", b.N))
			id := from.Submit(engine.Submission{Action: "wide", Input: json.RawMessage(`{}`)})
			from.Ended(id)
			var whole bytes.Buffer
			if err := from.Engine.Archives().Export(from.Ctx, &whole, archive.Manifest{}, archives.Exporting{IDs: []flow.ID{id}}); err != nil {
				b.Fatal(err)
			}
			to := rig(b)
			b.ResetTimer()
			began := time.Now()
			if out, err := to.Engine.Archives().Unpack(to.Ctx, &whole); err != nil || out.Executions != b.N+1 {
				b.Fatalf("%+v, %v", out, err)
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Minutes(), "unpacked/min")
		})
	}
}
