package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// firstLine is the text of the first visible line.
const firstLine = `(() => { const b = document.querySelector('.logview'), top = b.getBoundingClientRect().top; return [...b.querySelectorAll('.logrow')].find((r) => r.getBoundingClientRect().top >= top - 1)?.lastElementChild.textContent; })()`

// A log is read backwards from its end to its first byte: scrolling to the beginning of a page loads the page before, the visible lines
// stay where they are, and no line is left out. Later pages load in the same way, and the end is followed again.
func TestLogPageByPage(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		const lines = 200_000 // 1.3 MB: three pages
		id := s.submit(t, "/api/v1/evaluations", fmt.Sprintf(`{"language": "bash", "interactive": true, "source": "seq 1 %d; read x; echo $x", "limits": {"output": "16MB"}}`, lines))
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/logs?stream=stdout"))
		tb.see(fmt.Sprint(lines))
		tb.do("open its end alone", chromedp.Reload())
		tb.until("its end follows", `[...document.querySelectorAll('.logrow')].some((r) => r.innerText.includes('200000')) && document.body.innerText.includes('lines, following')`)
		tb.until("what was written before is not here", `Number(document.querySelector('.logbar [role=status]').innerText.replace(/\D/g, '')) < 50000`)
		// One screen at a time: the lines of each screen join those of the next one without a gap.
		jump := func(to string) {
			eval[any](tb, `(() => { const b = document.querySelector('.logview'); b.scrollTop = `+to+`; })()`)
		}
		top := func() int { return eval[int](tb, `Number(`+firstLine+`)`) }
		turns := 0
		for at := lines; at > 1; turns++ {
			if turns > 10 {
				t.Fatalf("line %d after %d pages", at, turns)
			}
			jump("0") // the first lines in the document, which may begin with a part of one
			tb.until("lines before the first are there, or there are none", `(document.querySelector('.logview').scrollTop > 0 || `+firstLine+` === '1') && Number(`+firstLine+`) > 0`)
			now := top()
			drawn := eval[[]int](tb, `[...document.querySelectorAll('.logrow')].map((r) => Number(r.lastElementChild.textContent))`)
			for i := 2; i < len(drawn); i++ {
				if drawn[i] != drawn[i-1]+1 {
					t.Fatalf("line %d is before %d", drawn[i-1], drawn[i])
				}
			}
			if now >= at {
				t.Fatalf("line %d is read after %d", now, at)
			}
			at = now
		}
		tb.until("its lines are numbered", `document.querySelector('.logrow .n').innerText === '1'`)
		tb.accessible("the first page of a log")
		tb.fits("the first page of a log")
		for last := 0; last != lines; {
			jump("b.scrollHeight")
			tb.until("later lines are there", fmt.Sprintf(`(() => { const n = Number([...document.querySelectorAll('.logrow')].at(-1).lastElementChild.textContent); return n > %d || n === 200000; })()`, last))
			last = eval[int](tb, `Number([...document.querySelectorAll('.logrow')].at(-1).lastElementChild.textContent)`)
		}
		tb.press("To the end")
		tb.see("lines, following")
		s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/stdin", "the last line\n")
		tb.see("the last line")
		tb.check("a log, page by page")
	})
}

// A click on the edge of a log line, or the key l, marks the line and makes its link. The link opens the page of the log that has the line, and so does the link of a line that a search has found.
func TestLinkToLine(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "echo warning >&2; seq -f line%06.0f 1 100000; echo no >&2", "wait": "60s", "limits": {"output": "16MB"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	logs := s.url + "/ui/executions/" + id + "/logs"
	marked := func(text string) {
		t.Helper()
		tb.until("the line is marked and in view", `(() => { const r = document.querySelector('.logrow.at-line'), b = document.querySelector('.logview'); if (!r || !r.innerText.includes(`+quote(text)+`)) return false; const at = r.getBoundingClientRect(), of = b.getBoundingClientRect(); return at.top >= of.top && at.bottom <= of.bottom; })()`)
	}
	tb.do("a byte of a line", chromedp.Navigate(logs+"#o=330005")) // 30,000 lines of 11 bytes
	marked("line030001")
	tb.see("Line at byte 330,005 of stdout")
	tb.accessible("a marked line")
	tb.fits("a marked line")
	tb.shot("a marked line")
	eval[any](tb, `[...document.querySelectorAll('.logrow')].find((r) => r.innerText.includes('line030005')).querySelector('.n').click()`)
	marked("line030005")
	link := eval[string](tb, `location.href`)
	if !strings.HasSuffix(link, "/logs#o=330044") {
		t.Errorf("the link to line 30,005 is %s", link)
	}
	tb.press("Unmark")
	tb.until("no line is marked", `!location.hash && !document.querySelector('.at-line')`)
	tb.do("the first line in view, by its key", chromedp.Focus(".logview"))
	tb.key("l", "l")
	tb.until("it is marked", `location.hash.startsWith('#o=') && document.querySelector('.logrow.at-line')?.lastElementChild.textContent === `+firstLine)
	tb.do("another log first", chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	marked("line030005")
	tb.do("search", chromedp.SendKeys(`input[name="find"]`, "line0777"+kb.Enter))
	tb.see("100 lines with line0777")
	eval[any](tb, `[...document.querySelectorAll('.hit a')].find((a) => a.parentElement.innerText.includes('line077742')).click()`)
	marked("line077742")
	eval[any](tb, `history.back()`)
	marked("line030005")
	// For a line of a stream that the view does not show, the link names the stream.
	tb.do("a line of stderr", chromedp.Navigate("about:blank"), chromedp.Navigate(logs+"#o=0&stream=stderr"))
	marked("warning")
	tb.do("no such byte", chromedp.Navigate("about:blank"), chromedp.Navigate(logs+"#o=99999999"))
	tb.see("it is not here")
	tb.see("line100000")
	tb.check("links to lines")
}

// Long lines wrap on request, and the line that is read stays in view; raw lines show the bytes that a terminal would obey. The address
// keeps both settings.
func TestWrapAndRaw(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "printf '\\033[31mred\\033[0m\\tx\\r\\n'; printf '10%%\\r20%%\\n'; for i in {1..300}; do printf '%03d%0600d end\\n' $i 0; done; for i in {1..40}; do printf '\\u754c'; done; echo", "wait": "60s"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	for _, width := range []int64{1280, 360} {
		tb.as("light", width)
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/logs"))
		tb.see("303 lines")
		eval[any](tb, `document.querySelector('.logview').scrollTop = 100 * 18`)
		tb.until("a line in the middle is read", `(`+firstLine+`)?.startsWith('099')`)
		tb.press("Wrap")
		tb.until("the same line is read, and broken", `location.search.includes('wrap=true') && (`+firstLine+`)?.startsWith('099') && document.querySelector('.logrow').getBoundingClientRect().height >= 54`)
		if wide := eval[[]int](tb, `(() => { const b = document.querySelector('.logview'); return [b.scrollWidth, b.clientWidth]; })()`); wide[0] > wide[1] {
			t.Errorf("broken lines are %d px wide in %d px", wide[0], wide[1])
		}
		// The number of rows counted for a line is the number that the browser draws.
		over := eval[[]string](tb, `[...document.querySelectorAll('.logrow')].filter((r) => Math.abs(r.lastElementChild.scrollHeight - r.getBoundingClientRect().height) > 1).map((r) => r.innerText.slice(0, 9) + ': ' + r.lastElementChild.scrollHeight + ' in ' + r.getBoundingClientRect().height)`)
		if len(over) > 0 {
			t.Errorf("%d px: lines do not fit their rows: %q", width, over)
		}
		tb.accessible("broken lines")
		tb.fits("broken lines")
		tb.shot(fmt.Sprintf("broken lines %d", width))
		tb.press("Raw")
		tb.until("the same line is read, raw", `location.search.includes('raw=true') && (`+firstLine+`)?.startsWith('099')`)
		tb.until("there is the beginning", `(document.querySelector('.logview').scrollTop = 0, (`+firstLine+`)?.includes('red'))`)
		tb.see("⟨U+001B⟩[31mred⟨U+001B⟩[0m⟨U+0009⟩x⟨U+000D⟩")
		tb.see("10%⟨U+000D⟩20%")
		tb.until("nothing is coloured", `!document.querySelector('.logrow .f1')`)
		tb.fits("raw lines")
		tb.shot(fmt.Sprintf("raw lines %d", width))
		tb.do("load again", chromedp.Reload())
		tb.see("303 lines")
		tb.until("it is as it was", `document.querySelectorAll('.logbar .toggle[aria-pressed=true]').length === 2`)
		tb.press("Raw")
		tb.until("the colour is back", `(document.querySelector('.logview').scrollTop = 0, document.querySelector('.logrow .f1')?.textContent === 'red')`)
	}
	tb.check("wrap and raw")
}
