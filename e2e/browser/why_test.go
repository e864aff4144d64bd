package browser

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A person who finds out that a queue is paused resumes it there and then.
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
	tb.check("unblocked")
}

// From an execution that waits for a key the page leads to its holder, and ends that; then the execution runs.
func TestUnblockAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	holder := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}, "concurrency": {"key": "deploy", "limit": 1}}`)
	waiting := s.submit(t, "/api/v1/executions", `{"action": "noop", "labels": {"user": "ann"}, "concurrency": {"key": "deploy", "limit": 1}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open why", chromedp.Navigate(s.url+"/ui/executions/"+waiting+"/why"))
	tb.see("noop waits for key deploy, which sleep holds; that sleeps until")
	tb.do("look at the line", chromedp.Click(`dl.facts a[href="work?key=deploy"]`))
	tb.see("1 of 1 held, 1 waiting")
	tb.do("say what is mine", chromedp.SendKeys("#mine", "user=ann\r"))
	tb.see("Yours: 1st")
	tb.accessible("a line with what is mine")
	tb.do("go back", chromedp.NavigateBack())
	tb.do("end the holder", chromedp.Click(`button[aria-label="End it: sleep `+holder+`"]`), chromedp.SendKeys("#reason", "it is in the way"))
	tb.accessible("the dialog that ends a holder")
	tb.press("Cancel the execution")
	tb.see("Completed")
	if x := s.call(t, http.MethodGet, "/api/v1/executions/"+holder, nil); x["status"] != "cancelled" {
		t.Errorf("the holder is %v", x["status"])
	}
	tb.check("unblocking")
}

// What is wrong with a submission stands beside the form before it is sent.
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
