package browser

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// value returns the value of a field.
func (tb *tab) value(selector string) string {
	tb.t.Helper()
	return eval[string](tb, `document.querySelector(`+quote(selector)+`).value`)
}

// Text typed into the form of a program is kept while the other form is shown. A definition chosen in the search is the one that runs.
func TestFormsBesideOneAnother(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "echo", "tasks": {"a": {"action": "noop"}}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/new"))
	tb.see("Program")
	tb.do("write a program", chromedp.SendKeys("#source", "echo 1"))
	tb.press("Action or workflow")
	tb.see("Input")
	tb.do("name an action", chromedp.SendKeys("#action", "noop"))
	tb.press("Code")
	tb.until("the program is seen again", `document.querySelector('#source').offsetParent !== null`)
	if got := tb.value("#source"); got != "echo 1" {
		t.Errorf("of the program %q is left", got)
	}
	tb.press("Action or workflow")
	tb.until("the action is seen again", `document.querySelector('#action').offsetParent !== null`)
	if got := tb.value("#action"); got != "noop" {
		t.Errorf("of the action %q is left", got)
	}
	tb.do("search", chromedp.KeyEvent("k", chromedp.KeyModifiers(2))) // 2: Ctrl
	tb.until("the search has the focus", `document.activeElement?.getAttribute('role') === 'combobox'`)
	tb.do("type", chromedp.KeyEvent("run echo"))
	tb.until("it is found", `document.querySelector('[role=option][aria-selected=true]')?.innerText.includes('Run echo')`)
	tb.key("take it", kb.Enter)
	tb.until("the form is that of the definition", `document.querySelector('#action')?.value === 'echo'`)
}

// An input changes from JSON to the form and back with all of its digits; an input that the form cannot hold stays JSON. Labels stay
// unchanged, too.
func TestFormAndJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "echo", "input": {"type": "object", "properties": {"n": {"type": "integer"}}}, "tasks": {"a": {"action": "noop"}}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	held := func(body string) {
		t.Helper()
		id := s.submit(t, "/api/v1/executions?wait=30s", body)
		tb.do("open", chromedp.Navigate(s.url+"/ui/new?from="+id))
		tb.until("the input is there, and a form for it", `document.querySelector('#input')?.value.includes('n') && [...document.querySelectorAll('button')].some((b) => b.innerText === 'Form')`)
		tb.press("JSON")
		tb.press("Form")
	}
	held(`{"action": "echo", "input": {"n": 900719925474099312345}, "labels": {"note": "a, b=c", "team": "docs"}}`)
	tb.until("the form has the number", `document.querySelector('#field-0')?.value === '900719925474099312345'`)
	tb.press("JSON")
	tb.until("the JSON has the number", `document.querySelector('#input')?.value.replace(/\s/g, '') === '{"n":900719925474099312345}'`)
	tb.press("Run")
	tb.until("it runs", `location.pathname.includes('/executions/')`)
	tb.see("a, b=c")
	held(`{"action": "echo", "input": {"n": 1, "more": [1.50]}}`)
	tb.see("The form cannot hold all of this")
	if got := tb.value("#input"); !strings.Contains(got, "1.50") {
		t.Errorf("the input is %q", got)
	}
}

// A request that is run again with changes keeps its queue, key, timeouts and retries; settings that came from its action's document are
// derived from it again. A wrong setting is reported before the form is sent.
func TestSettingsOfASubmission(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", "name: nap\nkind: action\naction: noop\ntimeout: 2m\nconcurrency: {key: \"nap/${{ input.who }}\", limit: 1}\ninput: {type: object, properties: {who: {type: string}}}\n")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as("light", 1280)
	ran := func() map[string]any {
		t.Helper()
		tb.press("Run")
		tb.until("it runs", `/executions\/ex_/.test(location.pathname)`)
		return s.call(t, http.MethodGet, "/api/v1/executions/"+eval[string](tb, `location.pathname.split('/')[3]`)+"?wait=30s", nil)
	}
	program := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "exit 0", "priority": 3, "timeout": "90s", "queue_timeout": "1h", "worker_labels": {}, "retry": {"max_attempts": 2}, "concurrency": {"key": "a key", "limit": 2, "fair_by": "ann"}, "wait": "60s"}`)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+program))
	tb.press("Run with changes")
	tb.until("the settings are there", `document.querySelector('#code-priority')?.value === '3' && document.querySelector('#code-timeout').value === '1m30s'`)
	for _, l := range []look{{"light", 1280}, {"dark", 360}} {
		tb.as(l.theme, l.width)
		tb.accessible("more settings")
		tb.fits("more settings")
		tb.shot(fmt.Sprint("more settings ", l.width))
	}
	fill := func(id, text string) {
		t.Helper()
		eval[any](tb, `(() => { const e = document.getElementById(`+quote(id)+`); e.value = `+quote(text)+`; e.dispatchEvent(new Event('input', {bubbles: true})); })()`)
	}
	fill("code-priority", "high")
	tb.see("The priority is a whole number")
	fill("code-priority", "4")
	tb.until("it is right", `!document.body.innerText.includes('is a whole number')`)
	x, was := ran(), s.call(t, http.MethodGet, "/api/v1/executions/"+program, nil)
	for _, f := range []string{"timeout", "queue_timeout", "retry", "key", "key_limit", "fair_by"} {
		if was[f] == nil || !reflect.DeepEqual(x[f], was[f]) {
			t.Errorf("%s is %v, and was %v", f, x[f], was[f])
		}
	}
	if x["priority"] != 4.0 {
		t.Errorf("the priority is %v", x["priority"])
	}

	nap := s.submit(t, "/api/v1/executions?wait=30s", `{"action": "nap", "input": {"who": "ann"}, "priority": 5}`)
	tb.do("open", chromedp.Navigate(s.url+"/ui/new?from="+nap))
	tb.until("only what was asked for is there", `document.querySelector('#action-priority')?.value === '5' && document.querySelector('#action-key').value === '' && document.querySelector('#action-timeout').value === ''`)
	fill("input", `{"who": "bob"}`)
	if x := ran(); x["key"] != "nap/bob" || x["priority"] != 5.0 || x["timeout"] != "2m0s" {
		t.Errorf("key %v, priority %v, timeout %v", x["key"], x["priority"], x["timeout"])
	}
	tb.check("settings")
}

// Pressing the mouse in a field and releasing it outside the dialog marks text and does not close the dialog. A click outside does.
func TestMarkTextInDialog(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.press("Cancel")
	tb.see("Cancel this execution?")
	tb.do("give a reason", chromedp.SendKeys("#reason", "long enough"))
	at := eval[[]float64](tb, `(() => { const r = document.querySelector('#reason').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	mouse := func(kind input.DispatchMouseEventType, x, y float64) {
		t.Helper()
		tb.do("mouse", command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1}))
	}
	eval[any](tb, `addEventListener('click', () => setTimeout(() => { window.clicks = (window.clicks || 0) + 1; }, 0), true)`)
	mouse(input.DispatchMouseEventTypeMousePressed, at[0], at[1])
	mouse(input.DispatchMouseEventTypeMouseMoved, 5, at[1])
	mouse(input.DispatchMouseEventTypeMouseReleased, 5, at[1])
	tb.until("the browser told of a click", `window.clicks === 1`)
	if !eval[bool](tb, `document.querySelector('dialog[open] #reason')?.value === 'long enough'`) {
		t.Error("marking text has closed the dialog")
	}
	mouse(input.DispatchMouseEventTypeMousePressed, 5, at[1])
	mouse(input.DispatchMouseEventTypeMouseReleased, 5, at[1])
	tb.until("a click outside closes it", `!document.querySelector('dialog[open]')`)
}

// After a session has ended, the page logs in again over the screen: typed text stays, also in a dialog, and streams continue.
func TestLoginAgain(t *testing.T) {
	t.Parallel()
	tokens := [2]string{fmt.Sprintf("%016x-first", rand.Uint64()), fmt.Sprintf("%016x-second", rand.Uint64())} // browsers send the cookie of a token to every port
	s := serve(t, tokens[0])
	host := strings.TrimPrefix(s.url, "http://")
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	form, history := open(t, host), open(t, host)
	form.do("open", chromedp.Navigate(s.url+"/ui/new"))
	form.see("asks for a token")
	form.do("log in", chromedp.SendKeys("#token", s.token+"\r"))
	form.see("Program")
	form.do("write a program", chromedp.SendKeys("#source", "print(6 * 7)"))
	history.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/history"))
	history.see("following")
	history.press("Cancel")
	history.do("give a reason", chromedp.SendKeys("#reason", "enough"))
	s.kill()
	history.see("Reconnecting")
	again := serveAt(t, tokens[1], s.store, s.state, host)
	history.see("asks for a token")
	history.accessible("a login over a screen")
	history.fits("a login over a screen")
	history.key("no way out", kb.Escape)
	history.key("no way out", kb.Escape)
	history.until("the login stays", `document.querySelector('dialog[open] #token') !== null`)
	form.press("Run")
	form.see("asks for a token")
	form.do("log in", chromedp.SendKeys("#token", again.token+"\r"))
	form.until("the program is there", `document.querySelector('#source')?.value === 'print(6 * 7)' && document.querySelector('#source').offsetParent !== null`)
	form.press("Run")
	form.until("it ran", `document.body.innerText.split('\n').includes('42')`)
	history.do("log in", chromedp.SendKeys("#token", again.token+"\r"))
	history.until("the dialog is there", `document.querySelector('dialog[open] #reason')?.value === 'enough' && document.querySelector('#reason').offsetParent !== null`)
	history.do("agree", click(`dialog[open] button[type=submit]`))
	history.see("no gap, complete")
	history.press("Log out")
	history.until("nothing of the screen is left", `document.querySelector('#token') !== null && document.querySelector('.frame') === null`)
}

// A stream survives a proxy that answers 502 while the server behind it restarts.
func TestStreamThroughProxyWithoutServer(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	var asked atomic.Int64
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/events") && asked.Add(1) == 1 {
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return
		}
		forward.ServeHTTP(w, r)
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.do("open", chromedp.Navigate(proxy+"/ui/executions/"+id+"/history"))
	tb.see("no gap, following")
}

// createsOne submits the form again and checks that the server has one execution.
func (tb *tab) createsOne(s *server) {
	tb.t.Helper()
	tb.press("Run")
	tb.see("Created")
	if n := len(s.call(tb.t, http.MethodGet, "/api/v1/executions", nil)["executions"].([]any)); n != 1 {
		tb.t.Errorf("%d executions, want 1", n)
	}
}

// A submission whose answer is lost in a proxy is sent again under its idempotency key, so there is one execution.
func TestSubmitThroughProxyThatGivesUp(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	var sent atomic.Int64
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method == http.MethodPost && r.URL.Path == "/api/v1/executions" && sent.Add(1) == 1 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "gateway timeout", http.StatusGatewayTimeout)
			return
		}
		forward.ServeHTTP(w, r)
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.do("open", chromedp.Navigate(proxy+"/ui/new?as=action"))
	tb.do("fill in", chromedp.SendKeys("#action", "noop"))
	tb.press("Run")
	tb.see("Gateway Timeout")
	tb.createsOne(s)
}

// A submission that gets no answer ends, keeps the typed text, and is sent again under its idempotency key, so there is one execution.
// Until then the page's clock runs 100 times as fast, so that its 120 s pass soon.
func TestSubmitThatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	var sent atomic.Int64
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method == http.MethodPost && r.URL.Path == "/api/v1/executions" && sent.Add(1) == 1 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			<-r.Context().Done()
			return
		}
		forward.ServeHTTP(w, r)
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.do("a fast clock", command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{ const slow = setTimeout; window.setTimeout = (f, ms, ...args) => slow(f, window.fast && ms >= 20000 ? ms / 100 : ms, ...args); }`}))
	tb.do("open", chromedp.Navigate(proxy+"/ui/new?as=action"))
	tb.do("fill in", chromedp.SendKeys("#action", "noop"), chromedp.SendKeys("#action-labels", "by=hand"))
	eval[any](tb, `window.fast = true`)
	tb.press("Run")
	tb.see("has not answered for 120 s")
	eval[any](tb, `window.fast = false`) // the next request may take as long as a busy machine needs
	tb.see("takes effect once")
	tb.accessible("a submission without an answer")
	tb.until("what was typed is there", `document.querySelector('#action').value === 'noop' && document.querySelector('#action-labels').value === 'by=hand'`)
	tb.createsOne(s)
}

// Every open row in view is followed, however many long-running open rows are above it.
func TestOpenRowsAreFollowed(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	last := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	s.call(t, http.MethodPost, "/api/v1/executions:batch", `{"executions": [`+strings.Repeat(`{"action": "sleep", "input": {"for": "1h"}}, `, 11)+`{"action": "sleep", "input": {"for": "1h"}}]}`)
	s.call(t, http.MethodPost, "/api/v1/executions:batch", `{"executions": [`+strings.Repeat(`{"action": "noop"}, `, 49)+`{"action": "noop"}]}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("1 … 50")
	tb.press("Older")
	tb.until("the last row is there", fmt.Sprintf(`document.querySelector('input[value=%q]') !== null`, last))
	s.call(t, http.MethodPost, "/api/v1/executions/"+last+"/cancel?wait=30s", `{}`)
	tb.until("it is shown as cancelled", fmt.Sprintf(`document.querySelector('input[value=%q]').closest('tr').innerText.includes('Cancelled')`, last))
}
