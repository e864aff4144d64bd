package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The screens of schedules and rules show their state, and why a rule has started nothing for a signal, in the page's words, with buttons
// for what can be done.
func TestHowTheyStand(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", strings.Replace(nightly, "fan", "noop", 1)+"---\nkind: rule\nname: each-alert\non: alert.fired\nif: signal.data.severity == \"page\"\nrun: {action: noop}\n"+
		"---\nkind: rule\nname: faulty\non: alert.fired\nrun: {action: noop, input: {n: '${{ signal.data.missing }}'}}\n")
	s.call(t, http.MethodPost, "/api/v1/schedules/nightly/pause", `{"reason": "holidays"}`)
	signal := s.call(t, http.MethodPost, "/api/v1/signals", `{"trigger": "alert.fired", "key": "a-1", "data": {"severity": "warn"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	looks := func(of string) {
		t.Helper()
		tb.until("no words of the terminal", `!document.querySelector('main').innerText.includes('pawl ')`)
		for _, l := range []look{{"dark", 1280}, {"light", 360}} {
			tb.as(l.theme, l.width)
			tb.accessible(of)
			tb.fits(of)
			tb.shot(fmt.Sprint(of, " ", l.width))
		}
	}
	tb.do("open the schedule", chromedp.Navigate(s.url+"/ui/schedules/nightly"))
	tb.see("It has been paused since")
	looks("how a schedule stands")
	tb.do("resume it there", chromedp.Click(`.unblock button`))
	tb.press("Resume the schedule")
	tb.see("Its next time is")
	tb.do("open the signal", chromedp.Navigate(s.url+fmt.Sprint("/ui/signals/", signal["signal"])))
	tb.see(`Its condition does not hold: signal.data.severity == "page" is false`)
	looks("why rules did not")
	tb.do("open the rule that failed", chromedp.Click(`main a[href="rules/faulty"]`))
	tb.see("It is in force, as version 1, and listens to alert.fired")
	tb.see("A corrected rule is applied, and asked about these signals again")
	looks("how a rule stands")
	s.call(t, http.MethodPost, "/api/v1/definitions", "kind: rule\nname: faulty\non: alert.fired\nrun: {action: noop}\n")
	s.call(t, http.MethodPost, "/api/v1/rules/faulty/pause", `{"reason": "too loud"}`)
	tb.see("It is paused and starts nothing: too loud")
	tb.do("resume it there", chromedp.Click(`.unblock button[aria-label="Resume: faulty"]`))
	tb.press("Resume the rule")
	tb.see("as version 2")
	tb.do("try again what failed", chromedp.Click(`.unblock button[aria-label^="Try again: faulty for"]`))
	tb.press("Ask it again")
	tb.see("1 ran")
	tb.until("nothing is left to do", `!document.querySelector('.unblock')`)
	tb.check("how they stand")
}

// Each column of the list of executions fits the longest word of a status, and a long value of a label leaves its name readable. An error
// is shown above the list, apart from its rows.
func TestColumnsHoldTheirWords(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", "name: inner\ntasks:\n  approve: {action: ask, with: {title: Ship it?}}\n---\nname: outer\ntasks:\n  in: {action: inner}\n")
	s.submit(t, "/api/v1/executions", map[string]any{"action": "outer", "labels": map[string]string{"team": strings.Repeat("W", 60)}})
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	for _, width := range []int64{1280, 1000, 800, 360} {
		tb.as("light", width)
		tb.do("open", chromedp.Navigate(s.url+"/ui/"))
		tb.see("Needs an answer")
		tb.until(fmt.Sprint("the status is within its column at ", width), `[...document.querySelectorAll('td.c-status')].every((c) => c.scrollWidth <= c.clientWidth)`)
		tb.until(fmt.Sprint("the name is in one line at ", width), `document.querySelector('.chip b').clientHeight < 24 && document.querySelector('.chip b').scrollWidth <= document.querySelector('.chip b').clientWidth + 1`)
	}
	s.kill()
	tb.see("The server does not answer")
	tb.until("what is wrong stands apart from the rows", `document.querySelector('table.runs').getBoundingClientRect().top - document.querySelector('.note.bad').getBoundingClientRect().bottom >= 8`)
}

// After a workflow has run, the screen of batches leads to the matrix of its items.
func TestBatchesOfWorkflows(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "graded", "tasks": {"each": {"foreach": [1, 2, 3], "action": "noop"}}}`)
	s.submit(t, "/api/v1/executions?wait=30s", `{"action": "graded"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/batches"))
	tb.see("What a workflow runs for each item of a list is a batch, too")
	tb.as("light", 360)
	tb.fits("workflows as batches")
	tb.accessible("workflows as batches")
	tb.do("open its items", chromedp.Click(`main a[href^="batches?of=ex_"]`))
	tb.see("3 of 3 executions passed")
}
