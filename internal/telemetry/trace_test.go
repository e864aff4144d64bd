package telemetry

import (
	"context"
	"log/slog"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// recording is a Tracer and its recorded spans.
func recording(o ...sdk.TracerProviderOption) (*Tracer, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()
	return NewTracer(sdk.NewTracerProvider(append(o, sdk.WithSyncer(kept))...)), kept
}

func TestNilTracerAndSpan(t *testing.T) {
	t.Parallel()
	var tracer *Tracer
	if tracer.Wanted(sampled) || tracer.Root(sampled, "x", time.Now()) != nil {
		t.Error("a nil tracer records")
	}
	s := tracer.Start(sampled, "x", time.Now())
	s.Set(slog.Int("n", 1))
	s.Fail("no")
	s.Child("y").End()
	s.EndAt(time.Now())
	ctx := s.In(context.Background())
	if s.Traceparent() != "" || StartIn(ctx, "z") != nil {
		t.Error("a nil span has a place in a trace")
	}
}

func TestParents(t *testing.T) {
	t.Parallel()
	tracer, kept := recording()
	for _, none := range []string{"", "rubbish", unsampled, sampled[:54], "ff" + sampled[2:], "00-00000000000000000000000000000000-b7ad6b7169203331-01", sampled[:52] + "-zz"} {
		if s := tracer.Start(none, "x", time.Now()); s != nil {
			t.Errorf("%q has a span beneath it", none)
		}
	}
	root := tracer.Root(sampled, "root", time.Now())
	attempt := tracer.Start(root.Traceparent(), "attempt", time.Now(), slog.String(Execution, "ex_1"), slog.Int(Attempt, 2), slog.String(Queue, ""))
	run := StartIn(attempt.In(context.Background()), "run")
	run.Fail("exit 1")
	run.End()
	attempt.End()
	root.End()
	spans := kept.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	for i, parent := range []string{attempt.Traceparent()[36:52], root.Traceparent()[36:52], "b7ad6b7169203331"} {
		if got := spans[i].Parent.SpanID().String(); got != parent || spans[i].SpanContext.TraceID().String() != sampled[3:35] {
			t.Errorf("%s is beneath %s in %s, want %s", spans[i].Name, got, spans[i].SpanContext.TraceID(), parent)
		}
	}
	if got := spans[1].Attributes; len(got) != 2 || got[0].Key != "pawl.execution" || got[1].Value.AsInt64() != 2 {
		t.Errorf("attributes %v", got)
	}
	if spans[0].Status.Description != "exit 1" {
		t.Errorf("status %v", spans[0].Status)
	}
}

// The sampler's decision at the request applies to everything that follows from it.
func TestSamplingIsDecidedOnce(t *testing.T) {
	t.Parallel()
	tracer, kept := recording(sdk.WithSampler(sdk.ParentBased(sdk.NeverSample())))
	root := tracer.Root("", "root", time.Now())
	if p := root.Traceparent(); len(p) != len(sampled) || p[53:] != "00" || tracer.Start(p, "attempt", time.Now()) != nil {
		t.Errorf("an unsampled request left %q", p)
	}
	root.End()
	if n := len(kept.GetSpans()); n != 0 {
		t.Errorf("%d spans", n)
	}
	if s := tracer.Start(sampled[:53]+"03", "x", time.Now()); s == nil {
		t.Error("flags with more bits are not understood")
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	h := NewHistogram([]float64{1, 2})
	for _, v := range []float64{0, 1, 1.5, 7} {
		h.Observe(v)
	}
	if d := h.Read(); d.Count != 4 || d.Sum != 9.5 || d.Buckets[1] != 2 || d.Buckets[2] != 3 {
		t.Errorf("%+v", d)
	}
}

func BenchmarkObserve(b *testing.B) {
	h := NewHistogram(Waits())
	for b.Loop() {
		h.Observe(0.003)
	}
}
