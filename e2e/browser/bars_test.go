package browser

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The limits of what the page costs. Each is a size, a count or seconds of processor time, not wall-clock time, so that other work on the
// machine hardly changes it.

// heap returns how many bytes of the page's heap are in use after a garbage collection.
func (tb *tab) heap() float64 {
	tb.t.Helper()
	used, err := act(tb, chromedp.Action[float64](func(ctx context.Context, t *chromedp.Target) (float64, error) {
		if _, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			return 0, err
		}
		r, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
		return r.UsedSize, err
	}))
	if err != nil {
		tb.t.Fatal(err)
	}
	return used
}

// cpu returns how many seconds of processor time the page's thread has used for the metric since the tab began to count.
func (tb *tab) cpu(metric string) float64 {
	tb.t.Helper()
	seconds, err := act(tb, chromedp.Action[float64](func(ctx context.Context, t *chromedp.Target) (float64, error) {
		r, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		for _, m := range r.Metrics {
			if m.Name == metric {
				return m.Value, err
			}
		}
		return 0, fmt.Errorf("no metric %s: %w", metric, err)
	}))
	if err != nil {
		tb.t.Fatal(err)
	}
	return seconds
}

// within logs a figure, and reports an error when it is above its limit.
func within(t *testing.T, what string, got, most float64) {
	t.Helper()
	t.Logf("%s: %.2f, at most %.2f", what, got, most)
	if got > most {
		t.Errorf("%s: %.2f, at most %.2f", what, got, most)
	}
}

// elements returns how many elements the document has.
func (tb *tab) elements() float64 {
	return float64(eval[int](tb, `document.querySelectorAll('*').length`))
}

// traffic returns how many requests the tab has made since the last call and how many bytes their answers had. It waits for requests under
// way.
func (tb *tab) traffic() (requests, bytes float64) {
	tb.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		tb.mu.Lock()
		n := len(tb.underWay)
		tb.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(deadline) {
			tb.t.Fatalf("%d requests are not answered", n)
		}
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	requests, bytes = float64(tb.requests), tb.bytes
	tb.requests, tb.bytes = 0, 0
	return requests, bytes
}

// The first load of the list costs few requests and bytes, and later screens cost fewer.
func TestCostOfLoading(t *testing.T) {
	s := serve(t, "")
	const one = `{"action": "noop", "labels": {"a": "b"}}`
	s.call(t, http.MethodPost, "/api/v1/executions:batch", `{"executions": [`+strings.Repeat(one+", ", 399)+one+`]}`)
	s.endAll(t, "a%3Db") // the list looks again while executions end
	id := s.submit(t, "/api/v1/evaluations", graded)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("count seconds of the processor", command(performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("1 … 50")
	requests, bytes := tb.traffic()
	within(t, "requests of the first load", requests, 30)
	within(t, "bytes of the first load", bytes, 64_000)
	within(t, "seconds of the processor in scripts of the first load", tb.cpu("ScriptDuration"), 0.25)
	within(t, "elements of the list", tb.elements(), 1500)
	within(t, "bytes of the heap with the list", tb.heap(), 10e6)
	for _, later := range []struct {
		path, shows string
		most        float64 // bytes: modules that earlier screens have loaded are not fetched again
	}{
		{"executions/" + id + "/result", "1 of 2 cases passed", 25_000}, {"batches", "a=b", 14_500}, {"compare?a=" + id, "The latest of code", 12_500}, {"new", "Program", 15_000},
		{"definitions", "Nothing is registered", 2_500}, {"work", "No key is in use", 9_500}, {"server", "ended on this server in the last hour", 9_000},
	} {
		eval[any](tb, `(() => { const a = document.createElement('a'); a.href = `+quote(later.path)+`; document.body.append(a); a.click(); a.remove(); })()`)
		tb.see(later.shows)
		_, bytes := tb.traffic()
		within(t, "bytes of "+strings.Split(later.path, "?")[0], bytes, later.most)
	}
}

// The elements in the document and the size of the heap are bounded, however many items, tasks and lines there are.
func TestCostOfMuch(t *testing.T) {
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "many", "input": {"type": "object", "properties": {"n": {"type": "array"}}}, "tasks": {"each": {"foreach": "${{ input.n }}", "action": "noop"}}}`)
	items := s.submit(t, "/api/v1/executions", `{"action": "many", "input": {"n": [`+strings.Repeat("1, ", 1999)+`1]}}`)
	s.end(t, items)
	tasks := map[string]any{} // 20 lines of 50 tasks, each of which needs one of the next line too
	for i := range 1000 {
		task := map[string]any{"action": "noop"}
		if i >= 20 {
			task["needs"] = []string{fmt.Sprint("t", i-20), fmt.Sprint("t", i-20+(i+1)%20-i%20)}
		}
		tasks[fmt.Sprint("t", i)] = task
	}
	s.call(t, http.MethodPost, "/api/v1/definitions", map[string]any{"name": "wide", "tasks": tasks})
	wide := s.submit(t, "/api/v1/executions", `{"action": "wide", "not_before": "2099-01-01T00:00:00Z"}`)
	cases := make([]string, 40)
	for i := range cases {
		cases[i] = fmt.Sprintf(`{"name": "case %d", "stdin": "", "expect": "%d"}`, i, i%3)
	}
	one := `{"language": "bash", "source": "echo 1", "labels": {"run": "wide", "who": "%d"}, "cases": [` + strings.Join(cases, ", ") + `]}`
	all := make([]string, 30)
	for i := range all {
		all[i] = fmt.Sprintf(one, i)
	}
	s.call(t, http.MethodPost, "/api/v1/evaluations:batch", `{"evaluations": [`+strings.Join(all, ", ")+`]}`)
	s.endAll(t, "run%3Dwide")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))

	tb.do("2,000 items", chromedp.Navigate(s.url+"/ui/executions/"+items+"/tasks"))
	tb.see("2,000 of 2,000 items")
	within(t, "elements of 2,000 items", tb.elements(), 2000)
	within(t, "bytes of the heap with 2,000 items", tb.heap(), 20e6)

	tb.do("1,200 cells in two columns", chromedp.Navigate(s.url+"/ui/batches?of=run%3Dwide"))
	tb.see("13 cases that all pass")
	tb.see("27 cases: Wrong answer")
	tb.do("1,200 cells", chromedp.Navigate(s.url+"/ui/batches?of=run%3Dwide&equal=each"))
	tb.see("of 1,200 cases passed")
	within(t, "elements of a matrix", tb.elements(), 1500)
	within(t, "bytes of the heap with a matrix", tb.heap(), 20e6)
	tb.until("the map has its size", `document.querySelector('.map canvas').width === 40 * 8 && document.querySelector('.map canvas').height === 30 * 8`)
	tb.do("later columns", click(`button[aria-label="Later Columns"]`))
	tb.until("the window has moved", `[...document.querySelectorAll('table.grid th.of')].at(-1).innerText.includes('39')`)
	tb.accessible("a matrix with a map")

	tb.do("1,000 tasks", chromedp.Navigate(s.url+"/ui/executions/"+wide+"/tasks?view=graph"))
	tb.until("the graph is there", `document.querySelectorAll('.graph .node').length > 3`)
	tb.see("1,000 tasks")
	for _, at := range []string{"0, 0", "g.scrollWidth / 2, g.scrollHeight / 2", "g.scrollWidth, g.scrollHeight"} {
		eval[any](tb, `(() => { const g = document.querySelector('.graph'); g.scrollTo(`+at+`); })()`)
		tb.until("there are the boxes in view", `(() => { const f = document.querySelector('.graph').getBoundingClientRect(); return [...document.querySelectorAll('.graph .node')].filter((n) => { const r = n.getBoundingClientRect(); return r.left < f.right && r.right > f.left && r.top < f.bottom && r.bottom > f.top; }).length > 3; })()`)
		within(t, "elements of a graph of 1,000 tasks", tb.elements(), 2500)
	}
	eval[any](tb, `document.querySelector('.node[data-task=t999]').focus()`)
	focused := func() int {
		return eval[int](tb, `Number((document.activeElement?.getAttribute('data-task') || '').slice(1))`)
	}
	for last := focused(); last >= 800; last = focused() { // ten tasks back along their edges, past those that were in the document
		tb.key("back along an edge", kb.ArrowLeft)
		tb.until("the focus is on an earlier task", fmt.Sprintf(`(() => { const at = document.activeElement?.getAttribute('data-task'); return at && Number(at.slice(1)) < %d; })()`, last))
	}
	within(t, "bytes of the heap with 1,000 tasks", tb.heap(), 20e6)
	tb.accessible("a graph with a map")
}

// The page loads the end of a log of 101 MB in at most 600 KB. The number of its elements and the size of its heap stay bounded at every
// scroll position, and on every page of the log.
func TestLargeLog(t *testing.T) {
	t.Parallel()
	const lines = 12_500_000 // 101 MB
	s := serve(t, "")
	long := s.submit(t, "/api/v1/evaluations", fmt.Sprintf(`{"language": "bash", "source": "seq 1 %d", "limits": {"output": "128MB", "wall": "3m", "cpu": "3m"}}`, lines))
	s.end(t, long)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("the end of the log", chromedp.Navigate(s.url+"/ui/executions/"+long+"/logs"))
	tb.see(strconv.Itoa(lines))
	tb.until("it is known how much there is, also at the end", `performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/logs/summary')).length === 2`)
	_, first := tb.traffic()
	within(t, "bytes of the end of a log of 101 MB", first, 600_000)
	// Backwards page by page: scrolling to the beginning of a page requests the one before. Then from the first byte on, and to a byte in the
	// middle.
	const pages = 8 // of 512 KB: 58,000 lines
	for page := 1; page <= pages; page++ {
		tb.until("there are earlier lines", fmt.Sprintf(`(() => { const b = document.querySelector('.logview'); if (Number(b.querySelectorAll('.logrow')[2]?.lastElementChild.textContent || NaN) < %d) return true; b.scrollTop = 0; return false; })()`, lines-page*50_000)) // the first row may be a part of a line
		within(t, "elements of a long log", tb.elements(), 1500)
	}
	requests, bytes := tb.traffic()
	within(t, "requests of 8 pages", requests, pages+2)
	within(t, "bytes of 8 pages", bytes, (pages+2)*600_000)
	tb.press("To the beginning")
	tb.until("the first line is there", `document.querySelector('.logrow:not(.note-row)').lastElementChild.textContent === '1'`)
	tb.do("a byte in the middle", chromedp.Navigate(s.url+"/ui/executions/"+long+"/logs#o=50000000"))
	tb.until("its line is marked", `document.querySelector('.logrow.at-line')?.innerText.includes('6388889')`)
	for _, at := range []string{"0", "b.scrollHeight / 2", "b.scrollHeight"} {
		eval[any](tb, `(() => { const b = document.querySelector('.logview'); b.scrollTop = `+at+`; })()`)
		tb.until("rows are drawn", `document.querySelectorAll('.logrow').length > 20`)
		within(t, "elements of a long log", tb.elements(), 1500)
	}
	within(t, "bytes of the heap with the end of a long log", tb.heap(), 80e6)
}
