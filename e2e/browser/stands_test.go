package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// How a schedule and a rule stand, and why a rule has started nothing for a signal, is on their screens in words of the page, with buttons for what can be done.
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
