// Package otlp sends spans to an OpenTelemetry collector: OTLP over HTTP, as protobuf. It is our own exporter because
// the usual one links gRPC for a single message, which makes the whole program a quarter larger (docs/decisions/0008).
// The environment variables, and the reactions to responses, follow the specification.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"google.golang.org/protobuf/proto"

	"github.com/pawl-run/pawl/internal/telemetry"
)

// Start returns a Tracer configured by the environment; nil if the environment enables none. The returned function
// flushes and stops it, and may always be called. service is the name unless OTEL_SERVICE_NAME is set.
func Start(getenv func(string) string, service, version string) (*telemetry.Tracer, func(context.Context) error, error) {
	nothing := func(context.Context) error { return nil }
	s, on, err := read(getenv)
	if err != nil || !on {
		return nil, nothing, err
	}
	about, err := describe(service, version)
	if err != nil {
		return nil, nothing, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// The SDK has one error handler for the whole process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("traces", telemetry.Err, err) }))
	p := sdk.NewTracerProvider(sdk.WithBatcher(&exporter{settings: s}), sdk.WithResource(about))
	return telemetry.NewTracer(p), p.Shutdown, nil
}

func describe(service, version string) (*resource.Resource, error) {
	ctx := context.Background()
	own, err := resource.New(ctx, resource.WithAttributes(text("service.name", service), text("service.version", version)), resource.WithHost(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, err
	}
	given, err := resource.New(ctx, resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	return resource.Merge(own, given)
}

// exporter posts batches of spans. The SDK calls it from one goroutine at a time.
type exporter struct{ settings *settings }

// Tries of one batch, and the pause after the first; it doubles.
const (
	tries     = 5
	firstWait = time.Second
)

// ExportSpans implements the SDK's SpanExporter. It retries, within ctx, while the response says that a retry may help.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := proto.Marshal(encode(spans))
	if err != nil {
		return fmt.Errorf("encode %d spans: %w", len(spans), err)
	}
	if e.settings.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(body)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return fmt.Errorf("compress %d spans: %w", len(spans), err)
		}
		body = packed.Bytes()
	}
	wait := firstWait
	for n := 1; ; n++ {
		again, after, err := e.post(ctx, body)
		if err == nil {
			return nil
		}
		if !again || n == tries {
			return fmt.Errorf("send %d spans to %s: %w", len(spans), e.settings.url, err)
		}
		select {
		case <-time.After(max(wait, after)):
		case <-ctx.Done():
			return fmt.Errorf("send %d spans to %s: %w", len(spans), e.settings.url, errors.Join(err, ctx.Err()))
		}
		wait *= 2
	}
}

// post sends one body, and returns whether a retry may help, and when.
func (e *exporter) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.settings.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.settings.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	req.Header = e.settings.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if e.settings.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := e.settings.client.Do(req)
	if err != nil {
		return true, 0, err
	}
	defer res.Body.Close()
	say, _ := io.ReadAll(io.LimitReader(res.Body, 200)) // for the error message
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		after = time.Duration(s) * time.Second
	}
	return again, after, fmt.Errorf("it answered %s %q", res.Status, say)
}

func (e *exporter) Shutdown(context.Context) error {
	e.settings.client.CloseIdleConnections()
	return nil
}
