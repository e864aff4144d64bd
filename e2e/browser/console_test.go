package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	asksTwice = "a = input('first? ')\nb = input('second? ')\nprint('sum', int(a) + int(b))\nimport sys\nprint('rest', repr(sys.stdin.read()))\n"
	typing    = `document.activeElement.id === 'console-line'`
)

// wrote waits until the log shows a text.
func (tb *tab) wrote(text string) {
	tb.t.Helper()
	tb.until("it wrote "+text, `[...document.querySelectorAll('.logrow')].some((r) => r.innerText.includes(`+quote(text)+`))`)
}

// A person starts a program that asks for input, answers with the keyboard alone, and ends its input.
func TestConsole(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/new"))
		tb.see("Interactive")
		tb.do("write the program", chromedp.SendKeys("#source", asksTwice))
		eval[any](tb, `[...document.querySelectorAll('label.check')].find((l) => l.innerText.includes('Interactive')).click()`)
		tb.until("there is no field for its input", `!document.querySelector('#stdin')`)
		tb.press("Run")
		tb.wrote("first? ")
		tb.until("the focus is where one types", typing)
		tb.do("answer", chromedp.KeyEvent("20\r"))
		tb.wrote("second? ")
		tb.until("what was sent is shown, and the focus stays", typing+` && document.querySelector('#console-line').value === '' && document.querySelector('.sent li').innerText.includes('20') && document.body.innerText.includes('3 B sent')`)
		tb.accessible("console")
		tb.do("answer", chromedp.KeyEvent("22\r"))
		tb.wrote("sum 42")
		tb.do("end the input", chromedp.KeyEvent("d", chromedp.KeyModifiers(2))) // Ctrl
		tb.see("Completed")
		tb.wrote("rest ''")
		tb.see("reads nothing more. 6 B were sent.")
		tb.until("the field is gone", `!document.querySelector('#console-line')`)
		tb.accessible("console that has ended")
		tb.fits("console that has ended")
		tb.shot("console ended")
	})
}

// After a reload the console shows what was sent and continues after it. Other keys begin a line, and Ctrl-D in a line that is not empty
// does not end the input.
func TestConsoleLoadedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/evaluations", map[string]any{"language": "python", "interactive": true, "source": asksTwice})
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.wrote("first? ")
	tb.until("the focus is where one types", typing)
	tb.do("answer", chromedp.KeyEvent("20\r"))
	tb.wrote("second? ")
	tb.do("load again", chromedp.Reload())
	tb.wrote("second? ")
	tb.until("what was sent is shown", `document.querySelector('.sent li')?.innerText.includes('20')`)
	tb.until("the focus is where one types", typing)
	tb.do("answer, and more", chromedp.KeyEvent("22"), chromedp.KeyEvent("d", chromedp.KeyModifiers(2)), chromedp.KeyEvent("\r", chromedp.KeyModifiers(8)), chromedp.KeyEvent("<b>ü\r")) // Ctrl, Shift
	tb.wrote("sum 42")
	tb.until("all lines are shown, as text", `[...document.querySelectorAll('.sent li .user')].map((l) => l.innerText).join() === '20,22,<b>ü' && document.body.innerText.includes('12 B sent')`)
	tb.press("End of input")
	tb.wrote(`rest '<b>ü\n'`)
	tb.see("Completed")
}

// A program reads each typed line once, whether it was typed while the execution waited or while the server could not be reached. The lines
// that another client types meanwhile are neither overwritten nor joined.
func TestConsoleOverBrokenConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/queues/default/pause", `{"reason": "a test"}`)
	id := s.submit(t, "/api/v1/evaluations", map[string]any{"language": "python", "interactive": true, "source": "import sys\nprint('read', sys.stdin.read().split())"})
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var lost atomic.Int32 // how many more answers to typed lines get lost
	lost.Store(1 << 20)
	through := httputil.NewSingleHostReverseProxy(to)
	through.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodPost && strings.HasSuffix(r.Request.URL.Path, "/stdin") && lost.Add(-1) >= 0 {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	proxy := httptest.NewServer(through)
	t.Cleanup(proxy.Close)
	tb := open(t, strings.TrimPrefix(proxy.URL, "http://"))
	tb.do("open", chromedp.Navigate(proxy.URL+"/ui/executions/"+id))
	tb.see("It does not run yet. What you send is kept")
	tb.until("the focus is where one types", typing)
	tb.do("type", chromedp.KeyEvent("one\rtwo\r"))
	tb.see("The server does not answer")
	tb.see("sending …")
	tb.accessible("console without a server")
	tb.shot("console away")
	lost.Store(0)
	tb.see("8 B sent")
	tb.until("no error stays", `!document.querySelector('[role=alert]') && !document.body.innerText.includes('sending')`)
	tb.fits("console of what waits")
	tb.shot("console waiting")
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/stdin", "three\n")
	tb.see("14 B sent")
	tb.do("type", chromedp.KeyEvent("four\r"))
	tb.see("19 B sent")
	tb.press("End of input")
	tb.see("The input has ended")
	s.call(t, http.MethodPost, "/api/v1/queues/default/resume", "")
	tb.wrote("read ['one', 'two', 'three', 'four']")
	tb.see("Completed")
}
