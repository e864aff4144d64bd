package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The screen of the server lists every promise that a verification checked, with its sentence, the number of rows checked, and its result:
// on a server with sound rows, and in an answer with broken ones.
func TestPromises(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "noop"}`)
	state := func(n int, word string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('table.promises tbody tr')].some((r) => r.cells[0].innerText === '%d' && r.cells[1].innerText.trim() === '%s' && r.cells[2].innerText.length > 20 && r.cells[3].innerText.length > 5)`, n, word)
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/server"))
	tb.press("Verify the store")
	tb.see("that rows can show")
	for _, n := range []int{1, 12, 33, 40, 67} {
		tb.until("a promise is kept", state(n, "Kept"))
	}
	tb.until("no history was replayed", `![...document.querySelectorAll('table.promises tbody tr')].some((r) => r.cells[0].innerText === '61')`)
	tb.do("with a replay", click(`label.check input`))
	tb.press("Verify the store")
	tb.see("with 1 history of 5 events")
	tb.until("histories were replayed", state(61, "Kept"))
	for _, l := range []look{{"light", 1280}, {"dark", 1280}, {"light", 360}, {"dark", 360}} {
		tb.as(l.theme, l.width)
		where := fmt.Sprintf("promises, %s, %d px", l.theme, l.width)
		tb.accessible(where)
		tb.fits(where)
		tb.shot(where)
	}
	tb.do("load again", chromedp.Reload())
	tb.until("the last verification is shown", state(61, "Kept"))
	tb.check("promises that are kept")

	var violations []string
	for range 25 {
		violations = append(violations, fmt.Sprintf(`{"invariant": 12, "execution": %q, "message": "<img src=x onerror=alert(1)> \u202e3 holders"}`, id))
	}
	broken := `{"at": "2026-01-02T03:04:05Z", "seconds": 1.5, "broken": [` + strings.Join(violations, ",") + `], "promises": [
		{"invariant": 1, "says": "A history is a walk.", "looked_at": "every event", "state": "unknown"},
		{"invariant": 2, "says": "An end is final.", "looked_at": "every end", "state": "kept"},
		{"invariant": 12, "says": "A key has at most as many holders as its limit.", "looked_at": "every key", "state": "broken", "broken": 25}]}`
	url := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.URL.Path != "/api/v1/verify" {
			forward.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, broken)
	})
	tb = open(t, strings.TrimPrefix(url, "http://"))
	tb.as("light", 360)
	tb.do("open", chromedp.Navigate(url+"/ui/server"))
	tb.see("25 broken promises, 1 of 3 are kept")
	tb.until("the broken one is first, with rows that break it", `(() => { const rows = document.querySelectorAll('table.promises tbody tr'); return rows[0].innerText.includes('Broken, 25 times') && rows[1].querySelectorAll('li').length === 20 && rows[1].innerText.includes('⟨U+202E⟩3 holders') && rows[2].innerText.includes('Not known') && rows[2].innerText.includes('not to the end'); })()`)
	tb.accessible("broken promises")
	tb.fits("broken promises")
	tb.shot("broken promises")
	tb.press("All 25")
	tb.until("all of them are shown", `document.querySelectorAll('table.promises li').length === 25 && document.querySelector('table.promises li a').getAttribute('href') === 'executions/`+id+`'`)
	tb.check("broken promises")
}
