package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/programtest"
)

// span is the part of a span that the collector keeps.
type span struct {
	service, name, trace, id, parent, execution string
	begin, end                                  uint64
}

// collected is a collector of traces.
type collected struct {
	mu    sync.Mutex
	spans []span
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var in collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range in.ResourceSpans {
		var service string
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				one := span{service: service, name: s.Name, trace: hexed(s.TraceId), id: hexed(s.SpanId), parent: hexed(s.ParentSpanId),
					begin: s.StartTimeUnixNano, end: s.EndTimeUnixNano}
				for _, a := range s.Attributes {
					if a.Key == "pawl.execution" {
						one.execution = a.Value.GetStringValue()
					}
				}
				c.spans = append(c.spans, one)
			}
		}
	}
}

// named returns the first span with a name, or nil when none has arrived yet.
func (c *collected) named(name string) *span {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.spans, func(s span) bool { return s.name == name }); i >= 0 {
		return &c.spans[i]
	}
	return nil
}

func hexed(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, x := range b {
		s.WriteByte(digits[x>>4])
		s.WriteByte(digits[x&15])
	}
	return s.String()
}

// One request is one trace: from the span of the caller through the server and the hand-off to the program in a remote worker's runtime.
func TestOneTraceAcrossProcesses(t *testing.T) { // not parallel: processes inherit its environment
	c := &collected{}
	srv := httptest.NewServer(c)
	defer srv.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", srv.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	dir := t.TempDir()
	p := serve(t, filepath.Join(dir, "server"), "--no-worker")
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	w := exec.Command(path, "worker", "--server", p.client.BaseURL(), "--state-dir", filepath.Join(dir, "worker"), "--runtime", "process")
	if err := programtest.Start(w); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = w.Process.Signal(syscall.SIGTERM)
		_ = w.Wait()
	}()
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.client.BaseURL()+"/api/eval", strings.NewReader(`{"language":"bash","source":"echo $((6*7))"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	_, id, _ := strings.Cut(res.Header.Get("Location"), "/executions/")
	if res.StatusCode != http.StatusAccepted || id == "" {
		t.Fatalf("%s %s", res.Status, body)
	}
	if x := p.wait(t, id); x.Status != api.Completed {
		t.Fatalf("%+v", x)
	}
	names := []string{"pawl.submit", "pawl.queue", "pawl.attempt", "pawl.run", "pawl.runtime", "pawl.report"}
	parents := []string{"", "pawl.submit", "pawl.submit", "pawl.attempt", "pawl.run", "pawl.attempt"}
	deadline, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(names, func(n string) bool { return c.named(n) == nil }) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the collector got %+v", c.spans)
		}
	}
	for i, name := range names {
		s := c.named(name)
		parent, service := caller, "pawl"
		if parents[i] != "" {
			parent = c.named(parents[i]).id
		}
		if i >= 2 {
			service = "pawl-worker"
		}
		if s.trace != trace || s.parent != parent || s.service != service || s.end < s.begin {
			t.Errorf("%s: %+v, want it beneath %s of %s, by %s", name, *s, parent, trace, service)
		}
		if i < 3 && s.execution != id {
			t.Errorf("%s is about %q, want %s", name, s.execution, id)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != len(names) {
		t.Errorf("%d spans: %+v", len(c.spans), c.spans)
	}
}
