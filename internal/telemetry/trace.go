package telemetry

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans. A nil Tracer makes none, at no cost. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

func NewTracer(p trace.TracerProvider) *Tracer {
	return &Tracer{p.Tracer("github.com/pawl-run/pawl")}
}

// Span is a span in progress. A nil Span is not recorded; all methods may be called on it.
type Span struct {
	tracer *Tracer
	span   trace.Span
}

// Wanted reports whether spans beneath a W3C traceparent are recorded, for callers with expensive attributes. It is
// false without a traceparent.
func (t *Tracer) Wanted(traceparent string) bool {
	const last = 54 // digit of the flags, whose lowest bit says "sampled"; Start reads the rest
	return t != nil && len(traceparent) > last && strings.IndexByte("13579bdf", traceparent[last]) >= 0
}

// Root starts a span, with or without a parent; the sampler decides whether it is recorded. It returns a span even if it
// is not: its traceparent passes the decision on.
func (t *Tracer) Root(traceparent, name string, from time.Time, attributes ...slog.Attr) *Span {
	if t == nil {
		return nil
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parse(traceparent))
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(converted(attributes)...))
	return &Span{t, span}
}

// Start starts a span beneath a traceparent; nil if that is not recorded.
func (t *Tracer) Start(traceparent, name string, from time.Time, attributes ...slog.Attr) *Span {
	if !t.Wanted(traceparent) {
		return nil
	}
	parent := parse(traceparent)
	if !parent.IsSampled() {
		return nil
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent)
	return t.beneath(ctx, name, from, attributes)
}

func (t *Tracer) beneath(ctx context.Context, name string, from time.Time, attributes []slog.Attr) *Span {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(converted(attributes)...))
	return &Span{t, span}
}

func (s *Span) Child(name string, attributes ...slog.Attr) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.beneath(trace.ContextWithSpan(context.Background(), s.span), name, time.Now(), attributes)
}

// Traceparent is the span's W3C traceparent header; "" for a nil Span.
func (s *Span) Traceparent() string {
	if s == nil {
		return ""
	}
	c := s.span.SpanContext()
	if !c.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", c.TraceID(), c.SpanID(), c.TraceFlags()&trace.FlagsSampled)
}

func (s *Span) Set(attributes ...slog.Attr) {
	if s != nil {
		s.span.SetAttributes(converted(attributes)...)
	}
}

func (s *Span) Fail(why string) {
	if s != nil {
		s.span.SetStatus(codes.Error, why)
	}
}

// End ends the span now. Ending it again does nothing.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

func (s *Span) EndAt(at time.Time) {
	if s != nil {
		s.span.End(trace.WithTimestamp(at))
	}
}

type spanKey struct{}

// In returns a context with the span, beneath which handlers can start their own.
func (s *Span) In(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// StartIn starts a span beneath that of ctx; nil if there is none.
func StartIn(ctx context.Context, name string, attributes ...slog.Attr) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span) // nil without one
	return s.Child(name, attributes...)
}

// parse parses a traceparent of version 00, or of a later version as far as it has the same parts; the zero value is invalid.
func parse(traceparent string) trace.SpanContext {
	const version, traceID, spanID, flags = 0, 3, 36, 53
	if len(traceparent) < flags+2 || strings.HasPrefix(traceparent, "ff") {
		return trace.SpanContext{}
	}
	var c trace.SpanContextConfig
	var b [1]byte
	for _, part := range []struct {
		into []byte
		at   int
	}{{b[:], version}, {c.TraceID[:], traceID}, {c.SpanID[:], spanID}, {b[:], flags}} {
		if _, err := hex.Decode(part.into, []byte(traceparent[part.at:part.at+2*len(part.into)])); err != nil {
			return trace.SpanContext{}
		}
	}
	c.TraceFlags = trace.TraceFlags(b[0]) & trace.FlagsSampled
	c.Remote = true
	context := trace.NewSpanContext(c)
	if !context.IsValid() {
		return trace.SpanContext{}
	}
	return context
}

func converted(attributes []slog.Attr) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(attributes))
	for _, a := range attributes {
		key := attribute.Key(attributePrefix + a.Key)
		switch v := a.Value.Resolve(); v.Kind() {
		case slog.KindInt64:
			all = append(all, key.Int64(v.Int64()))
		case slog.KindUint64:
			all = append(all, key.Int64(int64(v.Uint64())))
		case slog.KindBool:
			all = append(all, key.Bool(v.Bool()))
		case slog.KindFloat64:
			all = append(all, key.Float64(v.Float64()))
		default:
			if text := v.String(); text != "" {
				all = append(all, key.String(text))
			}
		}
	}
	return all
}
