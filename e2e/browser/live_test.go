package browser

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/chromedp"
)

// counters returns how many nodes the page keeps outside its document, and how many listeners, after a garbage collection. The number
// inside the document depends on how much of the list had been read when it was counted.
func (tb *tab) counters() (gone, listeners float64) {
	tb.t.Helper()
	gone, listeners = math.Inf(1), math.Inf(1)
	for range 5 { // a list redrawn between a collection and the count has its rows twice until the next collection
		tb.heap()
		shown := eval[float64](tb, `(() => { let n = 1; for (const w = document.createTreeWalker(document); w.nextNode();) n++; return n; })()`)
		r, err := act(tb, chromedp.Action[memory.GetDOMCountersResult](func(ctx context.Context, t *chromedp.Target) (memory.GetDOMCountersResult, error) {
			return cdp.Call(ctx, t, memory.GetDOMCounters, cdp.Empty{})
		}))
		if err != nil {
			tb.t.Fatal(err)
		}
		gone, listeners = min(gone, float64(r.Nodes)-shown), min(listeners, float64(r.JsEventListeners))
	}
	return gone, listeners
}

// A browser opens six connections to an HTTP/1.1 server, for all tabs together. Twenty background tabs follow executions and lists, and
// leave the connections to the visible tab.
func TestManyTabs(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	host := strings.TrimPrefix(s.url, "http://")
	for i := range 20 {
		tb := open(t, host)
		path := []string{"/ui/executions", "/ui/executions/" + id + "/history"}[i%2]
		tb.do("open", chromedp.Navigate(s.url+path))
		tb.see("sleep")
		tb.hide(true)
	}
	tb := open(t, host)
	tb.do("open one more", chromedp.Navigate(s.url+"/ui/executions/"+id+"/history"))
	tb.see("following")
	tb.see("Live")
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/cancel?wait=30s", `{}`)
	tb.see("no gap, complete")
}

// The page shows the end of each of 10,000 items while it is open, even if the server is killed in between, and what it keeps in memory
// stays bounded.
func TestItemsLive(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", "kind: trigger\nname: enough\nwaits: true\n")
	// The workflow stays open until after the kill, however fast its items end.
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "many", "input": {"type": "object", "properties": {"n": {"type": "array"}}}, "tasks": {"each": {"foreach": "${{ input.n }}", "action": "noop"}, "open": {"action": "wait", "with": {"signal": "enough"}}}}`)
	id := s.submit(t, "/api/v1/executions", `{"action": "many", "input": {"n": [`+strings.Repeat("1, ", 9999)+`1]}}`)
	host := strings.TrimPrefix(s.url, "http://")
	tb := open(t, host)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/tasks?task=each"))
	tb.until("items end", `/[1-9][0-9,]* of 10,000/.test(document.body.innerText)`)
	s.kill()
	tb.see("Reconnecting")
	again := serveAt(t, "", s.store, s.state, host)
	again.call(t, http.MethodPost, "/api/v1/signals", `{"trigger": "enough", "subject": "`+id+`"}`)
	again.end(t, id)
	tb.see("10,000 of 10,000 items")
	tb.see("10,000 completed")
	within(t, "elements of 10,000 items", tb.elements(), 2000)
	within(t, "bytes of the heap with 10,000 items", tb.heap(), 60e6)
}

// A list that is open while thousands of executions come and go keeps no more nodes and memory than before.
func TestListForLong(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	round := func(n int) {
		label := fmt.Sprintf("round-%d", n)
		s.call(t, http.MethodPost, "/api/v1/executions:batch", `{"executions": [`+strings.Repeat(`{"action": "noop"}, `, 599)+`{"action": "noop", "labels": {"of": "`+label+`"}}]}`)
		tb.see(label)
	}
	for n := range 3 {
		round(n)
	}
	heap := tb.heap()
	gone, listeners := tb.counters()
	for n := range 10 {
		round(3 + n)
	}
	within(t, "bytes of the heap that are more after 6,000 executions", tb.heap()-heap, 2e6)
	within(t, "rows in the document", eval[float64](tb, `document.querySelectorAll('tbody tr').length`), 100)
	n, l := tb.counters()
	within(t, "nodes that were in the document and are kept", n-gone, 500)
	within(t, "listeners that are more", l-listeners, 50)
}
