package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A person who sees that a queue is paused resumes it from there.
func TestUnblockFromWhy(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/queues/default/pause", `{"reason": "the rack is moved"}`)
	id := s.submit(t, "/api/v1/executions", `{"action": "noop"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.see(`Queue "default" is paused since`)
	tb.see("The end of a pause")
	tb.until("there is a button", `!!document.querySelector('button[aria-label="Resume: default"]')`)
	tb.until("the advice is in words of the page", `document.querySelector('.unblock').innerText.startsWith('It is resumed') && !document.querySelector('.unblock').innerText.includes('pawl')`)
	tb.as("light", 360)
	tb.fits("why it is paused")
	tb.accessible("why it is paused")
	tb.shot("why-paused-360")
	tb.as("dark", 1280)
	tb.accessible("why it is paused, dark")
	tb.shot("why-paused-1280")
	tb.press("Resume")
	tb.see("Resume this queue?")
	tb.press("Resume the queue")
	tb.see("Completed")
	picky := s.submit(t, "/api/v1/executions", `{"action": "noop", "worker_labels": {"gpu": "a100"}}`)
	tb.do("open one that no worker can run", chromedp.Navigate(s.url+"/ui/executions/"+picky+"/why"))
	tb.until("there is a command for a terminal", `document.querySelector('.unblock code')?.innerText === 'pawl worker --queues default --labels gpu=a100'`)
	tb.see("Submit it to a queue that has one")
	tb.shot("why-no-worker-1280")
	tb.as("light", 360)
	tb.fits("why no worker can run it")
	tb.accessible("why no worker can run it")
	tb.shot("why-no-worker-360")
	s.call(t, http.MethodPost, "/api/v1/queues/default/pause", `{}`)
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "deploy", "tasks": {"a": {"action": "noop"}}}`)
	workflow := s.submit(t, "/api/v1/executions", `{"action": "deploy"}`)
	tb.do("open a workflow whose task waits for that", chromedp.Navigate(s.url+"/ui/executions/"+workflow+"/why"))
	tb.until("the queue is resumed from here", `!!document.querySelector('.unblock button[aria-label="Resume: default"]')`)
	tb.check("unblocked")
}

// From an execution that waits for a key, the page leads to the key's holder and ends it; then the execution runs.
func TestUnblockAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	holder := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}, "concurrency": {"key": "deploy", "limit": 1}}`)
	waiting := s.submit(t, "/api/v1/executions", `{"action": "noop", "labels": {"user": "ann"}, "concurrency": {"key": "deploy", "limit": 1}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open why", chromedp.Navigate(s.url+"/ui/executions/"+waiting+"/why"))
	tb.see("noop waits for key deploy, which sleep holds; that sleeps until")
	tb.do("look at the line", click(`dl.facts a[href="work?key=deploy"]`))
	tb.see("1 of 1 held, 1 waiting")
	tb.do("say what is mine", chromedp.SendKeys("#mine", "user=ann\r"))
	tb.see("Yours: 1st")
	tb.accessible("a line with what is mine")
	urgent := s.submit(t, "/api/v1/executions", `{"action": "noop", "priority": 10, "concurrency": {"key": "deploy", "limit": 1}}`)
	tb.until("it says who was passed", `document.querySelector('tr.mine a[href="executions/`+urgent+`"]')?.closest('div').innerText.endsWith('of priority 10')`)
	tb.do("ask what another limit would do", chromedp.SendKeys("#what-limit", "2"))
	tb.see("1 of these would start now")
	tb.until("which", `document.querySelector('.places a[href="executions/`+urgent+`/why"]').closest('td').innerText.includes('would start')`)
	tb.accessible("a line with another limit")
	tb.as("light", 360)
	tb.fits("a line with another limit")
	tb.accessible("a line with another limit, narrow")
	tb.shot("line-360")
	tb.as("dark", 1280)
	tb.shot("line-1280")
	s.call(t, http.MethodPost, "/api/v1/executions/"+urgent+"/cancel", `{}`)
	tb.do("go back", chromedp.NavigateBack())
	tb.do("end the holder", click(`button[aria-label="End it: sleep `+holder+`"]`), chromedp.SendKeys("#reason", "it is in the way"))
	tb.accessible("the dialog that ends a holder")
	tb.press("Cancel the execution")
	tb.see("Completed")
	if x := s.call(t, http.MethodGet, "/api/v1/executions/"+holder, nil); x["status"] != "cancelled" {
		t.Errorf("the holder is %v", x["status"])
	}
	tb.check("unblocking")
}

// The history shows which processes held an execution, one after the other: a worker that was lost, the server, another worker; and when an
// ordered end was confirmed. It can be downloaded.
func TestWhoHadIt(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	host := strings.TrimPrefix(s.url, "http://")
	id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "sleep 600", "limits": {"wall": "15m"}}`)
	tb := open(t, host)
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/history"))
	owners := func(n int, words string) {
		t.Helper()
		tb.until(fmt.Sprint(n, " owners, the last ", words), fmt.Sprintf(`document.querySelectorAll('[aria-label="Who had it"] li').length === %d && [...document.querySelectorAll('[aria-label="Who had it"] li')].at(-1).innerText.includes(%s)`, n, quote(words)))
	}
	owners(2, "Attempt 1, running")
	s.kill()
	s = serveAt(t, "", s.store, s.state, host)
	owners(4, "Attempt 2, running")
	tb.see("Attempt 1, taken back: ")
	tb.see("Attempt 2, until a worker had it")
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/cancel?wait=30s", `{"reason": "enough"}`)
	owners(4, "Attempt 2, cancelled")
	tb.see("later: nothing of it is left running.")
	for _, l := range []look{{"light", 1280}, {"dark", 360}, {forced, 1280}} {
		tb.as(l.theme, l.width)
		tb.accessible("who had it")
		tb.fits("who had it")
		tb.shot(fmt.Sprint("who had it ", l.theme, l.width))
	}
	eval[any](tb, `(() => { const make = URL.createObjectURL; URL.createObjectURL = (b) => { b.text().then((t) => { window.saved = t; }); return make(b); }; })()`)
	tb.press("Download")
	tb.until("it is saved", `typeof window.saved === 'string'`)
	lines := strings.Split(strings.TrimSuffix(eval[string](tb, `window.saved`), "\n"), "\n")
	events := s.call(t, http.MethodGet, "/api/v1/executions/"+id+"/events?limit=1000", nil)["events"].([]any)
	if len(lines) != len(events) {
		t.Fatalf("%d lines are saved of %d events", len(lines), len(events))
	}
	for i, text := range lines {
		var e any
		if err := json.Unmarshal([]byte(text), &e); err != nil || !reflect.DeepEqual(e, events[i]) {
			t.Errorf("line %d is %s, and the event %v (%v)", i+1, text, events[i], err)
		}
	}
	tb.do("as it was", chromedp.Navigate(s.url+"/ui/executions/"+id+"/history?at=1"))
	tb.see("Event 1 of ")
	tb.until("nobody had it", `!document.querySelector('[aria-label="Who had it"]')`)
	tb.check("who had it")
}

// The faults of a submission are shown beside the form before it is sent.
func TestCheckBeforeSubmit(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", "name: greet\nkind: action\naction: noop\ninput: {type: object, required: [who], properties: {who: {type: string}}}\n")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/new?as=action&action=gret"))
	tb.see(`did you mean "greet"?`)
	tb.accessible("a form with what is wrong")
	tb.do("mend it", chromedp.SendKeys("#action", "\b\b\breet"))
	tb.see("who (required)")
	tb.check("the form")
}
