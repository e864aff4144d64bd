package server

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// The summary of logs has the size of each stream, while it is written and afterwards, without reading it.
func TestLogSummary(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "talk")
	h.await(t, id, "running", running)
	sum := func() *api.LogSummary {
		t.Helper()
		l, err := h.client.LogSummary(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := sum(); len(l.Streams) != 0 || l.Streams == nil || l.Status != api.Running || l.More {
		t.Errorf("before a byte: %+v", l)
	}
	const size = 300_000
	for range 3 {
		h.voice(id) <- strings.Repeat("x", size)
	}
	close(h.voice(id))
	h.await(t, id, "ended", terminal)
	l := sum()
	if len(l.Streams) != 1 {
		t.Fatalf("%+v", l)
	}
	if s := l.Streams[0]; s.Attempt != 1 || s.Stream != "stdout" || s.Bytes != 3*size || s.LastSeq < 3 || s.FirstAt.IsZero() || s.LastAt.Before(s.FirstAt) {
		t.Errorf("%+v", s)
	}
	if l, err := h.client.LogSummary(t.Context(), id, 2); err != nil || len(l.Streams) != 0 {
		t.Errorf("of an attempt that there was not: %+v, %v", l, err)
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions/"+id+"/logs/summary?attempt=0", "")
}
