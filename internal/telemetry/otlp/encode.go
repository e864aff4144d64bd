package otlp

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	wire "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

func text(key, value string) attribute.KeyValue { return attribute.String(key, value) }

// encode converts spans to OTLP. All spans of a process have one resource and one scope.
func encode(spans []sdk.ReadOnlySpan) *collector.ExportTraceServiceRequest {
	if len(spans) == 0 {
		return &collector.ExportTraceServiceRequest{}
	}
	scope := &wire.ScopeSpans{Scope: &common.InstrumentationScope{Name: spans[0].InstrumentationScope().Name}}
	for _, s := range spans {
		scope.Spans = append(scope.Spans, encodeSpan(s))
	}
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*wire.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: encodeAttributes(spans[0].Resource().Attributes())},
		SchemaUrl:  spans[0].Resource().SchemaURL(),
		ScopeSpans: []*wire.ScopeSpans{scope},
	}}}
}

func encodeSpan(s sdk.ReadOnlySpan) *wire.Span {
	context, trace, span, parent := s.SpanContext(), s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent().SpanID()
	out := &wire.Span{
		TraceId: trace[:], SpanId: span[:], Name: s.Name(), TraceState: context.TraceState().String(),
		Flags: uint32(context.TraceFlags()), Kind: wire.Span_SpanKind(s.SpanKind()), // the numbers are the same
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
		Attributes: encodeAttributes(s.Attributes()), DroppedAttributesCount: uint32(s.DroppedAttributes()),
	}
	if s.Parent().IsValid() {
		out.ParentSpanId = parent[:]
	}
	switch status := s.Status(); status.Code {
	case codes.Error:
		out.Status = &wire.Status{Code: wire.Status_STATUS_CODE_ERROR, Message: status.Description}
	case codes.Ok:
		out.Status = &wire.Status{Code: wire.Status_STATUS_CODE_OK}
	}
	return out
}

// encodeAttributes converts attributes: strings and numbers keep their type; anything else becomes a string.
func encodeAttributes(all []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, len(all))
	for i, kv := range all {
		v := &common.AnyValue{}
		switch kv.Value.Type() {
		case attribute.BOOL:
			v.Value = &common.AnyValue_BoolValue{BoolValue: kv.Value.AsBool()}
		case attribute.INT64:
			v.Value = &common.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}
		case attribute.FLOAT64:
			v.Value = &common.AnyValue_DoubleValue{DoubleValue: kv.Value.AsFloat64()}
		default:
			v.Value = &common.AnyValue_StringValue{StringValue: kv.Value.String()}
		}
		out[i] = &common.KeyValue{Key: string(kv.Key), Value: v}
	}
	return out
}
