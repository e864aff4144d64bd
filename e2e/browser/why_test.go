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
