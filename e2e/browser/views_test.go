package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A view is saved under a name, found again after a reload, and deleted.
func TestSavedViews(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.submit(t, "/api/v1/executions?wait=30s", `{"action": "noop", "labels": {"team": "docs"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions?label=team%3Ddocs&status=completed"))
	tb.press("Save this view")
	tb.do("name it", chromedp.SendKeys("#view-name", "Done <b>docs</b>"))
	tb.accessible("the dialog of a view")
	tb.press("Save")
	tb.see("Forget this view")
	tb.do("open the list", chromedp.Navigate(s.url+"/ui/executions"))
	tb.press("Done <b>docs</b>")
	tb.until("the address has the filters", `new URLSearchParams(location.search).get('label') === 'team=docs' && new URLSearchParams(location.search).get('status') === 'completed'`)
	tb.until("the view is marked", `document.querySelector('.views a[aria-current=page]')?.innerText === 'Done <b>docs</b>'`)
	tb.accessible("saved views")
	tb.press("Forget this view")
	tb.see("Save this view")
	tb.do("load again", chromedp.Reload())
	tb.see("Save this view")
	tb.check("saved views")
}

// The slider shows a workflow as it was at an event of its history: tasks that had not begun are pending again.
func TestReplay(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		s.call(t, http.MethodPost, "/api/v1/definitions", workflow)
		id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "fan"}`)
		events := s.call(t, http.MethodGet, "/api/v1/executions/"+id+"/events?limit=1000", nil)["events"].([]any)
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/tasks?view=list"))
		tb.see("3 ended")
		tb.press("Replay")
		tb.see("Event 1 of ")
		tb.until("nothing has begun", `[...document.querySelectorAll('.rows tbody tr')].every((r) => r.innerText.includes('Pending')) && document.querySelectorAll('.rows tbody tr').length === 3`)
		eval[any](tb, `document.activeElement.blur()`)
		for _, step := range []struct{ key, shows string }{{"j", "Event 2 of "}, {"j", "Event 3 of "}, {"k", "Event 2 of "}} {
			tb.do("the key "+step.key, chromedp.KeyEvent(step.key))
			tb.see(step.shows)
		}
		for range events {
			tb.do("the next event", chromedp.Evaluate[chromedp.Void](`document.querySelector('button[aria-label="Event after"]:not([disabled])')?.click()`))
		}
		tb.until("it is the last event", `document.querySelector('input[type=range]').value === document.querySelector('input[type=range]').max && location.search.includes('at=')`)
		tb.see("3 ended")
		tb.do("load again", chromedp.Reload())
		tb.see("3 ended")
		tb.press("History")
		tb.until("the event is marked", `document.querySelector('.event.at-it a[aria-current=step]') !== null`)
		tb.accessible("a replayed history")
		tb.press("Now")
		tb.until("the slider is gone", `!document.querySelector('input[type=range]') && !location.search.includes('at=')`)
		tb.check("replay")
	})
}

// At a past event, the page says what an execution waited for then, and what is not recorded.
func TestReplayWhy(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", workflow)
	host := strings.TrimPrefix(s.url, "http://")
	holder := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}, "concurrency": {"key": "db", "limit": 1}}`)
	id := s.submit(t, "/api/v1/executions", `{"action": "noop", "concurrency": {"key": "db", "limit": 1}}`)
	s.call(t, http.MethodPost, "/api/v1/executions/"+holder+"/cancel?wait=30s", `{}`)
	s.end(t, id)
	tb := open(t, host)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/why?at=2"))
	tb.see(`Waited in line for concurrency key "db" (limit 1)`)
	tb.see("Which executions held the key then, and its place in the line")
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			tb.as(theme, width)
			tb.fits("why it waited")
			tb.accessible("why it waited, " + theme)
			tb.shot(fmt.Sprintf("why-then-%s-%d", theme, width))
		}
	}
	tb.do("the next event", chromedp.Evaluate[chromedp.Void](`document.querySelector('button[aria-label="Event after"]').click()`))
	tb.see(`Waited in queue "default" for a worker`)
	tb.do("load again", chromedp.Reload())
	tb.see("and whether the queue, the action or a worker was paused")
	tb.press("Now")
	tb.see("Nothing: it is completed since")
	fan := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "fan"}`)
	tb.do("open a workflow", chromedp.Navigate(s.url+"/ui/executions/"+fan+"?at=5"))
	tb.press("Why")
	tb.see("had not begun: it needs each")
	tb.check("why it waited")
}

// An enforcement that failed is retried from the page, by the rule that is then in force.
func TestRetryEnforcement(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		const rule = "kind: rule\nname: r\non: t\nif: signal.data.host != ''\nrun: {action: noop}\n"
		s := serveOn(t, "", store)
		s.call(t, http.MethodPost, "/api/v1/definitions", rule)
		signal := s.call(t, http.MethodPost, "/api/v1/signals", `{"trigger": "t", "data": {"n": 1}}`)["signal"].(string)
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/signals/"+signal))
		tb.see("failed")
		tb.press("Try again")
		tb.see("Ask the rule once more?")
		tb.accessible("the question about a rule")
		tb.press("Leave it")
		s.call(t, http.MethodPost, "/api/v1/definitions", strings.Replace(rule, "signal.data.host != ''", "signal.data.n == 1", 1))
		tb.press("Try again")
		tb.press("Ask it again")
		tb.see("started")
		tb.check("a rule that is asked again")
	})
}

// A filter that matches nothing among the newest 40,000 executions says how far the list has searched, and the search continues from there.
func TestSearchFurtherBack(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/executions", map[string]any{"action": "sleep", "input": map[string]string{"for": "1h"}})
	noops := make([]map[string]string, 1000)
	for i := range noops {
		noops[i] = map[string]string{"action": "noop"}
	}
	for range 41 {
		s.call(t, http.MethodPost, "/api/v1/executions:batch", map[string]any{"executions": noops})
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions?action=sleep"))
	tb.see("None of the executions since")
	tb.accessible("a search that gave up")
	tb.shot("search-gave-up")
	tb.press("Search further back")
	tb.until("the row is there", `document.querySelectorAll('.rows tbody tr').length === 1`)
	tb.check("a search that goes on")
}

// A condition narrows the list and is kept in the address, and its faults are shown at their place. The executions that it selects are
// rerun together.
func TestFindAndRerun(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	for _, team := range []string{"docs", "docs", "web"} {
		s.submit(t, "/api/v1/executions?wait=30s", `{"action": "noop", "labels": {"team": "`+team+`"}}`)
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.until("three rows are there", `document.querySelectorAll('.rows tbody tr').length === 3`)
	find := func(condition string) {
		t.Helper()
		eval[any](tb, `document.querySelector('input[name=where]').focus(), document.querySelector('input[name=where]').select()`)
		tb.do("write the condition", chromedp.KeyEvent(condition+"\r"))
	}
	find("label.team == docs")
	tb.until("the fault is shown at its place", `document.querySelector('#where-fault .at')?.textContent === '=='`)
	tb.see("write =")
	tb.accessible("a fault in a condition")
	tb.shot("find-fault")
	find("label.team = docs and not status = failed")
	tb.until("two rows are there", `document.querySelectorAll('.rows tbody tr').length === 2 && new URLSearchParams(location.search).get('where') === 'label.team = docs and not status = failed'`)
	tb.press("Rerun all …")
	tb.see("Rerun 2 executions?")
	tb.accessible("a plan of many reruns")
	tb.shot("rerun-many")
	tb.press("Rerun 2 executions")
	tb.see("2 rerun")
	tb.press("Close")
	tb.until("the reruns are in the list", `document.querySelectorAll('.rows tbody tr').length === 4`)
	tb.check("finding and running again")
}

// The timeline is shown by task and by worker. With keys alone the view is switched, a bar of several attempts shows them apart, and one
// attempt opens its execution.
func TestTimelineByWorker(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", "name: spread\ntasks:\n  quick: {foreach: [1, 2, 3, 4, 5, 6, 7, 8], action: noop}\n  slow: {needs: quick, action: code, with: {language: bash, source: 'sleep 2'}}\n")
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "spread"}`)
	attempts := s.call(t, http.MethodGet, "/api/v1/executions/"+id+"/timeline", nil)["attempts"].([]any)
	if len(attempts) != 9 {
		t.Fatalf("%d attempts: %v", len(attempts), attempts)
	}
	worker := attempts[0].(map[string]any)["worker"].(string)
	// The eight begin 20 ms after one another, of which a bar takes at least 15.5; or they all begin within one millisecond.
	var together atomic.Bool
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/timeline") {
			forward.ServeHTTP(w, r)
			return
		}
		begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		moved := make([]map[string]any, len(attempts))
		for i, a := range attempts {
			from, to := time.Duration(20*i)*time.Millisecond, time.Duration(20*i+15)*time.Millisecond
			if together.Load() {
				from, to = 0, 0
			}
			if i == 8 {
				from, to = 200*time.Millisecond, 2200*time.Millisecond
			}
			moved[i] = maps.Clone(a.(map[string]any))
			moved[i]["worker"], moved[i]["created_at"], moved[i]["claimed_at"], moved[i]["finished_at"] = worker, begun, begun.Add(from), begun.Add(to)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"attempts": moved})
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.do("open", chromedp.Navigate(proxy+"/ui/executions/"+id+"/tasks?view=timeline"))
	tb.see("the colour is how it ended")
	enter := func(what, selector string) {
		tb.until(what+" is there", fmt.Sprintf(`!!document.querySelector(%s)`, quote(selector)))
		tb.do(what, chromedp.Focus(selector), chromedp.KeyEvent("\r"))
	}
	enter("the switch", `a[href*="by=worker"]`)
	tb.see(worker)
	tb.until("the switch says so", `document.querySelector('[aria-label="Rows of the timeline"] [aria-pressed=true]').innerText === 'By worker'`)
	tb.see("9 attempts")
	tb.until("the short ones are one bar", `[...document.querySelectorAll('.span')].some((b) => b.classList.contains('several') && /attempts from quick.* on/.test(b.getAttribute('aria-label')))`)
	enter("the bar of several", `.span.several`)
	tb.see("Show all of it")
	each := `[1, 2, 3, 4, 5, 6, 7].every((i) => [...document.querySelectorAll('main dt a')].some((a) => a.innerText === 'quick[' + i + ']'))`
	tb.until("they are apart, and named", `location.search.includes('span=') && document.querySelectorAll('.span').length === 8 && `+each)
	together.Store(true)
	tb.do("load again", chromedp.Reload())
	tb.until("they are one bar, and named", `document.querySelectorAll('.span').length === 1 && `+each)
	together.Store(false)
	tb.do("load again", chromedp.Reload())
	tb.until("they are apart again", `document.querySelectorAll('.span').length === 8`)
	tb.accessible("a span of the timeline by worker")
	tb.shot("a span of the timeline by worker")
	tb.do("load again", chromedp.Reload())
	tb.see("Show all of it")
	enter("all of it", `a[href*="by=worker"]:not([href*="span="]):not([aria-pressed])`)
	tb.until("all is shown", `!location.search.includes('span=') && document.querySelectorAll('.span').length > 0`)
	enter("the slow one", `.span[aria-label^="slow"]`)
	tb.until("its execution is open", `/executions\/ex_\w+$/.test(location.pathname) && !location.pathname.includes('`+id+`')`)
	tb.check("timeline by worker")
}

// The timeline is filtered by status and name, by task and by worker. The filter is in the address, and the remaining bars stay where they
// were.
func TestTimelineIsFiltered(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tasks := map[string]any{"mixed": map[string]any{"foreach": []int{0, 1, 0, 0}, "action": "code", "needs": "t0", "continue_on_error": true, "with": map[string]any{"language": "bash", "source": "exit ${{ item }}"}}}
	for i := range 6 {
		tasks[fmt.Sprint("t", i)] = map[string]any{"action": "noop"}
	}
	s.call(t, http.MethodPost, "/api/v1/definitions", map[string]any{"name": "mixes", "tasks": tasks})
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "mixes"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/tasks?view=timeline"))
	rows := func(n int) {
		t.Helper()
		tb.until(fmt.Sprint(n, " rows"), fmt.Sprintf(`document.querySelectorAll('.timeline .line-row').length === %d`, n))
	}
	bars := func(n int) {
		t.Helper()
		tb.until(fmt.Sprint(n, " bars"), fmt.Sprintf(`document.querySelectorAll('.timeline .span').length === %d`, n))
	}
	rows(7)
	bars(10)
	where := `document.querySelector('.span[aria-label^="mixed[1]"]').getBoundingClientRect().left`
	before := eval[float64](tb, where)
	eval[any](tb, `[...document.querySelectorAll('[aria-label="Filter tasks"] button')].find((b) => b.innerText.includes('Failed')).focus()`)
	tb.key("those that failed", kb.Enter)
	tb.see("1 of 7 tasks")
	rows(1)
	bars(1)
	if after := eval[float64](tb, where); after != before {
		t.Errorf("the bar is at %v px, and was at %v", after, before)
	}
	tb.until("the address says so", `new URLSearchParams(location.search).get('status') === 'failed'`)
	for _, width := range []int64{360, 1280} {
		tb.as("dark", width)
		tb.accessible("a filtered timeline")
		tb.fits("a filtered timeline")
		tb.shot(fmt.Sprint("filtered timeline ", width))
	}
	tb.press("By worker")
	tb.see("1 of 10 attempts")
	bars(1)
	tb.accessible("a filtered timeline by worker")
	tb.do("load it anew", chromedp.Reload())
	tb.see("1 of 10 attempts")
	tb.press("Clear")
	tb.see("10 attempts")
	tb.key("to the name", "/")
	tb.until("the field has the focus", `document.activeElement?.getAttribute('aria-label') === 'Name of a task'`)
	eval[any](tb, `document.activeElement.select()`) // the driver sends the character although the screen handled the key
	tb.key("a part of a name", "none"+kb.Enter)
	tb.see("No attempt that a worker has had has all of these.")
	tb.press("By task")
	tb.see("No task that has begun has all of these.")
	tb.check("a filtered timeline")
}

// All of thousands of items can be reached: those with a status, and the longest first. The address keeps the choice.
func TestItemsAsATable(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "many", "input": {"type": "object", "properties": {"n": {"type": "array"}}}, "tasks": {"each": {"foreach": "${{ input.n }}", "continue_on_error": true, "action": "sleep", "with": {"for": "${{ item }}"}}}}`)
	spans := make([]string, 2000)
	for i := range spans {
		spans[i] = `"1ms"`
	}
	spans[11] = `"never"`
	id := s.submit(t, "/api/v1/executions", `{"action": "many", "input": {"n": [`+strings.Join(spans, ", ")+`]}}`)
	s.end(t, id)
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/items") {
			forward.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		var page map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
			t.Errorf("%v: %.200s", err, answer.Body)
		}
		for _, i := range page["items"].([]any) {
			if item := i.(map[string]any); item["index"] == 7.0 { // a busy machine may run any of them for seconds
				item["finished_ms"] = item["finished_ms"].(float64) + 3.6e6
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(proxy+"/ui/executions/"+id+"/tasks?view=list"))
	tb.press("As a table")
	tb.see("1 … 100 of 2,000")
	tb.until("the grid is gone", `!document.querySelector('.items')`)
	tb.press("Longest first")
	first := func(what, item, status string) {
		t.Helper()
		tb.until(what, `(() => { const tr = [...document.querySelectorAll('table.rows')].at(-1)?.querySelector('tbody tr'); return tr?.cells[0].innerText === `+quote(item)+` && tr.cells[1].innerText.trim() === `+quote(status)+`; })()`)
	}
	first("the longest is first", "7", "Completed")
	for _, l := range []look{{"dark", 360}, {"light", 1280}} {
		tb.as(l.theme, l.width)
		tb.accessible("items as a table")
		tb.fits("items as a table")
		tb.shot(fmt.Sprint("items as a table ", l.width))
	}
	eval[any](tb, `[...document.querySelectorAll('[aria-label="Items by status"] a')].find((a) => a.innerText.includes('Failed')).click()`)
	first("the one that failed is there", "11", "Failed")
	tb.do("load it anew", chromedp.Reload())
	first("it is there again", "11", "Failed")
	tb.until("it alone", `[...document.querySelectorAll('table.rows')].at(-1).querySelectorAll('tbody tr').length === 1`)
	tb.check("items as a table")
}

// All items of a task are in a grid, however many there are: a key leads to the failed one, and a click opens the one under the pointer.
// Going back leads to the same cell.
func TestItemsAsAGrid(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "many", "input": {"type": "object", "properties": {"n": {"type": "array"}}}, "tasks": {"each": {"foreach": "${{ input.n }}", "continue_on_error": true, "action": "sleep", "with": {"for": "${{ item }}"}}}}`)
	const total = 10_000
	spans := make([]string, total)
	for i := range spans {
		spans[i] = `"1ms"`
	}
	spans[4711] = `"never"`
	id := s.submit(t, "/api/v1/executions", `{"action": "many", "input": {"n": [`+strings.Join(spans, ", ")+`]}}`)
	s.end(t, id)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/tasks?view=list"))
	tb.see("10,000 of 10,000 items, 1 failed")
	chosen := func(what, label string) {
		t.Helper()
		tb.until(what, `document.querySelector('.items [role=option]')?.getAttribute('aria-label').startsWith(`+quote(label)+`)`)
	}
	drawn := func(where string) {
		t.Helper()
		tb.until("the cells are drawn "+where+", that which failed otherwise than the others", `(() => {
			const c = document.querySelector('.items canvas');
			const size = 12 * c.width / c.clientWidth, cols = c.width / size;
			const pixels = (n) => [...c.getContext('2d').getImageData((n % cols) * size, Math.floor(n / cols) * size, size, size).data];
			const same = (a, b) => pixels(a).join() === pixels(b).join();
			return pixels(0).some((v) => v > 0) && same(4709, 4710) && !same(4710, 4711);
		})()`)
	}
	chosen("the first is chosen", "Item 0: Completed")
	drawn("at first")
	within(t, "elements of 10,000 items", tb.elements(), 1000)
	within(t, "bytes of the heap with 10,000 items", tb.heap(), 20e6)
	for _, l := range []look{{"dark", 360}, {"light", 360}, {forced, 1280}, {"dark", 1280}, {"light", 1280}} {
		tb.as(l.theme, l.width)
		tb.accessible("items as a grid")
		tb.fits("items as a grid")
		tb.shot(fmt.Sprint("items as a grid ", l.theme, " ", l.width))
	}

	drawn("in another theme and width")
	tb.do("to the grid", chromedp.Focus(".items"))
	cols := eval[int](tb, `document.querySelector('.items canvas').clientWidth / 12`)
	tb.key("down", kb.ArrowDown)
	chosen("it is beneath", fmt.Sprintf("Item %d: Completed", cols))
	tb.key("the last", kb.End)
	chosen("it is the last", "Item 9,999: Completed")
	tb.until("it is in view", `(() => { const [a, f] = [document.querySelector('.items a'), document.querySelector('.items')].map((e) => e.getBoundingClientRect()); return a.top >= f.top && a.bottom <= f.bottom + 1; })()`)
	tb.press("Next that did not complete")
	chosen("the one that failed", "Item 4,711: Failed")
	tb.shot("items as a grid at one that failed")
	tb.do("to the grid again", chromedp.Focus(".items"))
	tb.key("open it", kb.Enter)
	tb.until("its execution is open", `location.pathname.includes('/executions/ex_') && !location.pathname.includes('`+id+`')`)
	tb.see("each[4711]")
	eval[any](tb, `history.back()`)
	chosen("the way back leads to it", "Item 4,711: Failed")

	tb.traffic() // no more data arrives that would move the grid under the mouse
	at := eval[[]float64](tb, `(() => { const f = document.querySelector('.items'); f.scrollIntoView({block: 'center'}); f.scrollTo(0, 0); const r = f.getBoundingClientRect(); return [r.left + 12 * 5 + 6, r.top + 12 * 2 + 6]; })()`)
	tb.do("click a cell", chromedp.MouseClickXY(at[0], at[1]))
	tb.until("its execution is open", `location.pathname.includes('/executions/ex_') && !location.pathname.includes('`+id+`')`)
	tb.see(fmt.Sprintf("each[%d]", 2*cols+5))
	tb.check("items as a grid")
}

// While a program is written, the page says how it would run and what is wrong with it.
func TestCheckOfCode(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/new"))
	tb.do("write", chromedp.SendKeys("#source", "print(1)"), chromedp.SendKeys("#wall", "soon"))
	tb.see("Not yet right")
	tb.see("limits.wall")
	tb.accessible("a program that would be refused")
	tb.shot("a program that would be refused")
	tb.do("mend it", chromedp.SendKeys("#wall", "\b\b\b\b2s"))
	tb.see("It would run code in queue default")
	tb.check("the check of a program")
}

// In a large graph a chain of tasks is one box, which leads to the chain.
func TestChainsAreFolded(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tasks := map[string]any{"first": map[string]any{"action": "noop"}}
	for i := range 20 {
		tasks[fmt.Sprint("side", i)] = map[string]any{"action": "noop", "needs": []string{"first"}}
	}
	for i := range 450 {
		needs := "first"
		if i > 0 {
			needs = fmt.Sprint("t", i-1)
		}
		tasks[fmt.Sprint("t", i)] = map[string]any{"action": "noop", "needs": []string{needs}}
	}
	s.call(t, http.MethodPost, "/api/v1/definitions", map[string]any{"name": "long", "tasks": tasks})
	id := s.submit(t, "/api/v1/executions", `{"action": "long", "not_before": "2099-01-01T00:00:00Z"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/tasks?view=graph"))
	tb.see("t0 … t449")
	tb.see("450 tasks in a row, 0 ended")
	tb.see("20 × noop, 0 ended")
	tb.until("the first is there", `document.querySelectorAll('.graph .node').length === 3`)
	tb.accessible("a graph with a folded chain")
	tb.fits("a graph with a folded chain")
	tb.shot("folded chain")
	tb.do("open the chain", click(`.node[data-task=t0]`))
	tb.until("the chain is there", `new URLSearchParams(location.search).get('task') === 't0' && document.querySelector('.node[data-task=t1]') !== null && document.querySelector('.map canvas') !== null`)
	tb.until("few boxes are in the document", `document.querySelectorAll('.graph .node').length < 200`)
	tb.do("choose another", click(`.node[data-task=first]`))
	tb.see("t0 … t449")
}

// Cases that ended alike in every row are one column. A click or a key shows each of them, and another folds them again; the address keeps
// the choice.
func TestEqualColumnsAreFolded(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	alike(t, s, "alike", "echo ok", "read n; [ $n = 2 ] && echo no || echo ok")
	alike(t, s, "worse", "echo no", "echo no")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/batches?of=run%3Dalike"))
	columns := func(what string, want ...string) {
		t.Helper()
		list, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		tb.until(what, `JSON.stringify([...document.querySelectorAll('table.grid th.of')].map((h) => h.innerText)) === `+quote(string(list)))
	}
	columns("six cases are one column", "6 cases that all pass", "case 2", "case 4", "case 5", "case 8")
	if n := eval[int](tb, `document.querySelectorAll('table.grid [aria-label$="6 cases that all pass: Passed"]').length`); n != 2 {
		t.Errorf("%d cells say what the six cases are, want 2", n)
	}
	if n := eval[int](tb, `document.querySelectorAll('#page a:not([href])').length`); n != 0 {
		t.Errorf("%d links lead nowhere", n)
	}
	tb.accessible("folded columns")
	tb.do("go to the heading", chromedp.Focus(`table.grid th.of button`))
	tb.key("unfold it", kb.Enter)
	all := make([]string, 10)
	for i := range all {
		all[i] = fmt.Sprint("case ", i)
	}
	columns("each is there", all...)
	tb.until("the focus is where it is undone", `document.activeElement.innerText === 'Fold equal columns'`)
	tb.do("load it again", chromedp.Reload())
	columns("each is there", all...)
	tb.press("Fold equal columns")
	columns("they are one again", "6 cases that all pass", "case 2", "case 4", "case 5", "case 8")
	tb.press("Show each column")
	columns("each is there", all...)
	tb.accessible("unfolded columns")
	tb.do("what did not pass", chromedp.Navigate(s.url+"/ui/batches?of=run%3Dalike&show=failing"))
	columns("three equal columns stay apart", "case 2", "case 4", "case 5", "case 8")
	tb.do("what flipped", chromedp.Navigate(s.url+"/ui/batches?of=run%3Dworse&against=run%3Dalike"))
	columns("six cases that got worse are one column", "6 cases: Wrong answer", "case 2", "case 4", "case 5", "case 8")
	if signs := eval[[]string](tb, `[...document.querySelectorAll('table.grid td:has([role=img])')].map((c) => getComputedStyle(c.firstElementChild, '::after').content + ' ' + c.firstElementChild.getAttribute('aria-label'))`); !slices.Equal(signs, []string{
		`"▼" who=ann, 6 cases: Wrong answer: Wrong answer, worse, before Passed`, `"▼" who=bob, 6 cases: Wrong answer: Wrong answer, worse, before Passed`}) {
		t.Errorf("the cells of the column say %q", signs)
	}
	if !eval[bool](tb, `(() => { const b = document.querySelector('table.grid th.of button'); const words = document.createRange(); words.selectNodeContents(b); return words.getBoundingClientRect().top >= b.getBoundingClientRect().top; })()`) {
		t.Error("the heading does not fit its button")
	}
	for _, theme := range []string{"dark", "light"} {
		tb.as(theme, 1280)
		tb.accessible("folded columns that flipped " + theme)
		tb.shot("folded flips " + theme)
	}
}

// Equal siblings are one box, which shows that one failed and leads to all. A filter by status and name keeps the names of the tasks it
// matches; it is in the address and works without a pointer.
func TestGraphIsFoldedAndFiltered(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tasks := map[string]any{"first": map[string]any{"action": "noop"}, "other": map[string]any{"action": "noop", "needs": "first"}}
	needs := []string{"other"}
	for i := range 12 {
		name := fmt.Sprint("s", i)
		code := 0
		if i == 7 {
			code = 1
		}
		needs = append(needs, name)
		tasks[name] = map[string]any{"action": "code", "needs": "first", "continue_on_error": true, "with": map[string]any{"language": "bash", "source": fmt.Sprint("exit ", code)}}
	}
	tasks["last"] = map[string]any{"action": "noop", "needs": needs}
	s.call(t, http.MethodPost, "/api/v1/definitions", map[string]any{"name": "spread", "tasks": tasks})
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "spread"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	nodes := func(n int, selector string) {
		t.Helper()
		tb.until(fmt.Sprint(n, " boxes ", selector), fmt.Sprintf(`document.querySelectorAll('.graph .node%s').length === %d`, selector, n))
	}
	look := func(what string) {
		t.Helper()
		for _, theme := range []string{"light", "dark", forced} {
			for _, width := range []int64{360, 1280} {
				tb.as(theme, width)
				tb.accessible(what + " " + theme)
				tb.fits(what + " " + theme)
				tb.shot(fmt.Sprint(what, " ", theme, " ", width))
			}
		}
	}
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/tasks?view=graph"))
	tb.see("12 × code, 1 failed")
	nodes(4, "")
	look("folded siblings")

	eval[any](tb, `[...document.querySelectorAll('[aria-label="Filter tasks"] button')].find((b) => b.innerText.includes('Failed')).focus()`)
	tb.key("those that failed", kb.Enter)
	tb.see("1 of 15 tasks")
	nodes(3, ".faded")
	tb.until("the address says so", `new URLSearchParams(location.search).get('status') === 'failed'`)
	tb.do("open the group", click(`.node.many`))
	tb.until("it leads to the one that failed", `new URLSearchParams(location.search).get('task') === 's7'`)
	nodes(15, "")
	nodes(14, ".faded")
	look("filtered graph")
	eval[any](tb, `document.querySelector('.node[data-task=s7]').focus()`)
	tb.key("along the edge", kb.ArrowLeft)
	tb.until("what is left out says what it is while it has the focus", `document.activeElement?.getAttribute('data-task') === 'first' && getComputedStyle(document.activeElement.firstElementChild).opacity === '1'`)
	tb.press("Clear")
	nodes(0, ".faded")

	tb.key("to the name", "/")
	tb.until("the field has the focus", `document.activeElement?.getAttribute('aria-label') === 'Name of a task'`)
	eval[any](tb, `document.activeElement.select()`) // the driver sends the character although the screen handled the key
	tb.key("a part of names", "S1"+kb.Enter)
	tb.see("3 of 15 tasks")
	nodes(12, ".faded")
	tb.do("load it anew", chromedp.Reload())
	tb.see("3 of 15 tasks")
	tb.press("List")
	tb.until("the list has these alone", `[...document.querySelectorAll('table.rows tbody a.open-row')].map((a) => a.innerText).sort().join() === 's1,s10,s11'`)
	tb.accessible("a filtered list of tasks")

	tb.do("the definition", chromedp.Navigate(s.url+"/ui/definitions/spread?name=first"))
	tb.see("12 × code")
	nodes(3, ".faded")
	tb.accessible("a filtered definition")
}

// All tasks of two executions can be reached, 100 at a time.
func TestCompareManyTasks(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tasks := map[string]any{}
	for i := range 250 {
		tasks[fmt.Sprintf("t%03d", i)] = map[string]any{"action": "noop"}
	}
	s.call(t, http.MethodPost, "/api/v1/definitions", map[string]any{"name": "wide", "tasks": tasks})
	later := `{"action": "wide", "not_before": "2099-01-01T00:00:00Z"}`
	a, b := s.submit(t, "/api/v1/executions", later), s.submit(t, "/api/v1/executions", later)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/compare?show=tasks&a="+a+"&b="+b))
	tb.see("250 tasks")
	tb.press("All tasks")
	tb.see("1 … 100 of 250")
	seen := eval[int](tb, `document.querySelectorAll('table.pairs tbody tr').length`)
	for _, next := range []string{"101 … 200 of 250", "201 … 250 of 250"} {
		tb.press("Later")
		tb.see(next)
		seen += eval[int](tb, `document.querySelectorAll('table.pairs tbody tr').length`)
	}
	if seen != 250 {
		t.Errorf("%d tasks on three pages, want 250", seen)
	}
	tb.until("there is nothing later", `[...document.querySelectorAll('.more button')].at(-1).disabled`)
	tb.accessible("the last of many tasks compared")
	tb.fits("the last of many tasks compared")
	tb.shot("compare many tasks")
}
