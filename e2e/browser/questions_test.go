package browser

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const approval = `{"action": "ask", "input": {"title": "Ship <b>it</b>?", "text": "first\nsecond", "assignees": ["ada", "bob"], "expires": "2h", "accept": "answer.ok",
	"form": {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean", "title": "Go"}, "when": {"enum": ["now", "tonight"], "default": "now"}, "n": {"type": "integer", "minimum": 3}}}}}`

// A question is found, refused to a person who may not answer it, and answered on its own screen and on that of its execution.
func TestAnswerQuestion(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	first, second := s.submit(t, "/api/v1/executions", approval), s.submit(t, "/api/v1/executions", strings.Replace(approval, "Ship", "Again ship", 1))
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	for _, theme := range []string{"light", "dark"} {
		tb.as(theme, 1280)
		tb.do("open", chromedp.Navigate(s.url+"/ui/questions"))
		tb.see("Ship <b>it</b>?")
		tb.accessible("questions " + theme)
		tb.as(theme, 390)
		tb.fits("questions " + theme)
	}
	tb.as("light", 1280)
	tb.do("the question", chromedp.Navigate(s.url+"/ui/executions/"+first+"/why"))
	tb.see("Who answers")
	tb.accessible("question of an execution")
	tb.do("somebody else", chromedp.SetValue("#field-0", "true"), chromedp.SendKeys("#by", "eve"))
	eval[any](tb, `document.querySelector('#field-0').dispatchEvent(new Event('change', {bubbles: true}))`)
	tb.press("Answer")
	tb.see("eve is not among those asked")
	eval[any](tb, `(() => { const by = document.querySelector('#by'); by.value = 'ada'; by.dispatchEvent(new Event('input', {bubbles: true})); })()`)
	tb.press("Answer")
	tb.until("it has completed", `document.querySelector('.head .status')?.innerText === 'Completed'`)
	all := s.call(t, http.MethodGet, "/api/v1/inquiries?state=answered", nil)["inquiries"].([]any)
	if len(all) != 1 || all[0].(map[string]any)["answer"].(map[string]any)["by"] != "ada" {
		t.Errorf("answered: %v", all)
	}
	tb.do("the list", chromedp.Navigate(s.url+"/ui/questions"))
	tb.see("Again ship")
	eval[any](tb, `document.querySelector('a.open-row').click()`)
	tb.see("Asked by")
	tb.see("second")
	tb.accessible("question")
	eval[any](tb, `(() => { const no = document.querySelector('#field-0'); no.value = 'false'; no.dispatchEvent(new Event('change', {bubbles: true})); })()`)
	tb.press("Answer")
	tb.see("declined by ada")
	if x := s.call(t, http.MethodGet, "/api/v1/executions/"+second, nil); x["status"] != "failed" {
		t.Errorf("it is %v", x["status"])
	}
	tb.do("the others", chromedp.Navigate(s.url+"/ui/questions?state=all"))
	tb.see("answered by ada")
	tb.check("questions")
}

// The reason why a workflow waits leads to its question, and a registered definition leads to a run of it.
func TestAnswerForAWorkflow(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("register", chromedp.Navigate(s.url+"/ui/register"))
	tb.see("Begin with an example")
	tb.do("write", chromedp.SendKeys("#document", `{"name": "release", "tasks": {"approve": {"action": "ask", "with": {"title": "Ship it?"}}}}`))
	tb.see("Nothing is wrong")
	tb.press("Register")
	tb.do("run it", click(`[role=status] a[href="new?action=release"]`))
	tb.see("It would run release@1")
	tb.press("Run")
	tb.see("Needs an answer")
	s.call(t, http.MethodPost, "/api/v1/definitions", "kind: trigger\nname: paid\nwaits: true\n")
	s.submit(t, "/api/v1/executions", `{"action": "wait", "input": {"signal": "paid", "since": "now"}}`)
	s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	list := `[...document.querySelectorAll('table.runs tbody tr')].map((r) => r.querySelector('.status').innerText + (r.querySelector('.c-verdict a') ? ' by a link' : '')).sort().join()`
	tb.do("the list", chromedp.Navigate(s.url+"/ui/executions?status=running"))
	tb.until("the list says what each waits for", list+` === 'Awaits a signal,Needs an answer by a link,Sleeping'`)
	if asked := eval[[]string](tb, `performance.getEntriesByType('resource').map((e) => e.name).filter((n) => /api.v1/.test(n) && !/executions\?|session/.test(n))`); len(asked) > 0 {
		t.Errorf("the list asks for %q", asked)
	}
	tb.accessible("a list of what waits")
	tb.as("light", 360)
	tb.fits("a list of what waits")
	tb.as("light", 1280)
	eval[any](tb, `[...document.querySelectorAll('table.runs a.open-row')].find((a) => a.innerText === 'release@1').click()`)
	tb.do("why it waits", click(`nav.tabs a[href$="/why"]`), click(`.unblock a[href^="questions/iq_"]`))
	tb.see("Who answers")
	tb.check("a question of a workflow")
}
