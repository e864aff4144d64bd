package browser

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The rounds of a task are shown as rounds in the graph, as cells and in the list; a task whose condition is never met says so.
func TestRounds(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "poll", "tasks": {
		"ask": {"action": "noop", "with": {"n": "${{ round }}"}, "repeat": {"until": "output.n >= 3", "max": 5}},
		"never": {"needs": ["ask"], "action": "noop", "with": {"n": 0}, "repeat": {"until": "output.n > 0", "max": 2}}}}`)
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "poll"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.see("round 3 of at most 5")
	tb.see("round 2 of at most 2")
	tb.accessible("a workflow with rounds")
	tb.shot("rounds")
	tb.press("List")
	tb.see("never")
	tb.accessible("the list of a workflow with rounds")
	tb.check("rounds")
}

// A task with a cached outcome names the execution that produced it, both in its workflow and on its own screen.
func TestCachedTask(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "report", "tasks": {"fetch": {"action": "noop", "with": {"n": 1}, "cache": {"ttl": "1h"}}}}`)
	s.submit(t, "/api/v1/executions?wait=60s", `{"action": "report"}`)
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "report"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.see("its outcome was kept; it did not run")
	tb.accessible("a workflow with a cached task")
	tb.press("Open")
	tb.see("Cached: outcome of")
	tb.accessible("a cached task")
	tb.check("cached")
}

// A finished execution can be downloaded as an archive.
func TestDownloadArchive(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "noop"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.see("Download archive")
	tb.accessible("an execution that can be downloaded")
	tb.check("archive")
}
