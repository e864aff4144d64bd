package otlp

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// received is a collector that answers with the next of its statuses, or 200, and keeps the spans that it accepts.
type received struct {
	mu       sync.Mutex
	statuses []int
	tries    int
	header   http.Header
	spans    []*wire.Span
	resource map[string]string
}

func (c *received) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
	if len(c.statuses) > 0 {
		status := c.statuses[0]
		c.statuses = c.statuses[1:]
		http.Error(w, "not now", status)
		return
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(body)
	}
	b, _ := io.ReadAll(body)
	var in collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &in); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "what is that", http.StatusBadRequest)
		return
	}
	c.header, c.resource = r.Header, map[string]string{}
	for _, of := range in.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			c.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// environment is an environment for one test.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestSpansArrive(t *testing.T) {
	t.Parallel()
	c := &received{statuses: []int{503}} // the first try meets a collector that is starting
	srv := httptest.NewServer(c)
	defer srv.Close()
	tracer, flush, err := Start(environment("OTEL_EXPORTER_OTLP_ENDPOINT", srv.URL+"/", "OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y=2", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"), "pawl", "v1")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	root := tracer.Root("", "root", begun, slog.String("text", "t"), slog.Int("n", 3), slog.Bool("yes", true), slog.Float64("half", .5))
	child := root.Child("child")
	child.Fail("no luck")
	child.End()
	root.EndAt(begun.Add(time.Second))
	if err := flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tries != 2 || len(c.spans) != 2 || c.header.Get("X-Key") != "a b" || c.header.Get("Y") != "2" {
		t.Fatalf("%d tries, spans %v, header %v", c.tries, c.spans, c.header)
	}
	if c.resource["service.name"] != "pawl" || c.resource["service.version"] != "v1" || c.resource["telemetry.sdk.language"] != "go" {
		t.Errorf("resource %v", c.resource)
	}
	low, top := c.spans[0], c.spans[1]
	if low.Name != "child" || string(low.ParentSpanId) != string(top.SpanId) || string(low.TraceId) != string(top.TraceId) || low.Status.Message != "no luck" || low.Status.Code != wire.Status_STATUS_CODE_ERROR {
		t.Errorf("child %v", low)
	}
	if top.Name != "root" || top.ParentSpanId != nil || top.EndTimeUnixNano-top.StartTimeUnixNano != uint64(time.Second) || top.Kind != wire.Span_SPAN_KIND_SERVER || top.Flags != 1 {
		t.Errorf("root %v", top)
	}
	got := map[string]string{}
	for _, a := range top.Attributes {
		got[a.Key] = a.Value.String()
	}
	if len(got) != 4 || !strings.Contains(got["pawl.n"], "int_value:3") || !strings.Contains(got["pawl.text"], `"t"`) || !strings.Contains(got["pawl.yes"], "true") || !strings.Contains(got["pawl.half"], "0.5") {
		t.Errorf("attributes %v", got)
	}
}

// Spans that the collector refuses are not sent again.
func TestRefusedSpans(t *testing.T) {
	t.Parallel()
	c := &received{statuses: []int{400}}
	srv := httptest.NewServer(c)
	defer srv.Close()
	s, on, err := read(environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", srv.URL+"/v1/traces"))
	if err != nil || !on {
		t.Fatal(on, err)
	}
	err = (&exporter{s}).ExportSpans(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "400") || c.tries != 1 {
		t.Errorf("%v after %d tries", err, c.tries)
	}
}

func TestOffByDefault(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		nil,
		{"OTEL_SERVICE_NAME", "mine"},
		{"OTEL_SDK_DISABLED", "true", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"},
		{"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"},
	} {
		tracer, flush, err := Start(environment(env...), "pawl", "")
		if tracer != nil || err != nil || flush(t.Context()) != nil {
			t.Errorf("%v: %v, %v", env, tracer, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for want, env := range map[string][]string{
		"http://localhost:4318/v1/traces": {"OTEL_TRACES_EXPORTER", "otlp"},
		"http://all:4318/x/v1/traces":     {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318/x/"},
		"https://traces/as/it/stands":     {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/as/it/stands"},
	} {
		if s, on, err := read(environment(env...)); err != nil || !on || s.url != want {
			t.Errorf("%v: %+v, %v", env, s, err)
		}
	}
	for say, env := range map[string][]string{
		"speaks http/protobuf":       {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		"has otlp and none":          {"OTEL_TRACES_EXPORTER", "zipkin"},
		"is no URL":                  {"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"},
		"gzip or none":               {"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
		"milliseconds":               {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
		"not written as name=value":  {"OTEL_EXPORTER_OTLP_HEADERS", "secret"},
		"OTEL_EXPORTER_OTLP_CERTIFI": {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere"},
		"_CLIENT_KEY":                {"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/nowhere"},
	} {
		if env[0] != "OTEL_TRACES_EXPORTER" {
			env = append(env, "OTEL_TRACES_EXPORTER", "otlp")
		}
		if _, on, err := read(environment(env...)); on || err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v: %v", env, err)
		}
	}
}
