package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is one tab of the browser. The field wrong collects what a page must never do: throw, break the policy, open a dialog, call another
// host.
type tab struct {
	ctx context.Context
	t   *testing.T

	mu    sync.Mutex
	wrong []string

	requests int                        // since the last call of traffic
	bytes    float64                    // of the answers, as received
	underWay map[network.RequestID]bool // without streams
}

// watch runs before every document and keeps what the policy refused.
const watch = `window.refused = [];
document.addEventListener('securitypolicyviolation', (e) => window.refused.push(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample));`

func open(t *testing.T, host string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, options...)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // makes the tab, which lives as long as this context
		t.Fatal(err)
	}
	tb := &tab{ctx: ctx, t: t, underWay: map[network.RequestID]bool{}}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if x := e.ExceptionDetails.Exception; x != nil {
				text += " " + x.Description
			}
			tb.say("an exception: %s", text)
		case *page.EventJavascriptDialogOpening:
			tb.say("a dialog: %s", e.Message)
		case *network.EventLoadingFinished:
			tb.mu.Lock()
			tb.bytes += e.EncodedDataLength
			delete(tb.underWay, e.RequestID)
			tb.mu.Unlock()
		case *network.EventLoadingFailed:
			tb.mu.Lock()
			delete(tb.underWay, e.RequestID)
			tb.mu.Unlock()
		case *network.EventRequestWillBeSent:
			tb.mu.Lock()
			tb.requests++
			if e.Type == network.ResourceTypeDocument {
				clear(tb.underWay) // the browser drops the requests of the previous document
			}
			stream := false
			for name, value := range e.Request.Headers {
				stream = stream || strings.EqualFold(name, "Accept") && value == "text/event-stream"
			}
			if !stream {
				tb.underWay[e.RequestID] = true
			}
			tb.mu.Unlock()
			u, err := url.Parse(e.Request.URL)
			if err != nil || u.Host != host && u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" {
				tb.say("a request to another host: %s", e.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	tb.do("watch the tab", command(network.Enable, network.EnableParams{}),
		command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch}))
	t.Cleanup(func() { tb.check("at the end") })
	return tb
}

// command is a command of the protocol whose result is not needed.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// click waits for a visible element and clicks it in the same step: a mouse event would go to the element's earlier place, and screens move
// while their parts load.
func click(selector string) chromedp.Action[chromedp.Void] {
	return clickOn(`document.querySelector(` + quote(selector) + `)`)
}

// clickWords clicks the first element that matches the selector and contains the words.
func clickWords(selector, words string) chromedp.Action[chromedp.Void] {
	return clickOn(`[...document.querySelectorAll(` + quote(selector) + `)].find((e) => e.innerText.includes(` + quote(words) + `))`)
}

// clickOn clicks an element once it exists, is enabled, and nothing else lies over the middle of its first line. The check and the click
// are one step of the page, so the element cannot move between them.
func clickOn(element string) chromedp.Action[chromedp.Void] {
	clicked := chromedp.Evaluate[bool](`((e) => {
		if (!e || e.disabled || e.getClientRects().length === 0) return false;
		const open = () => {
			const box = e.getClientRects()[0], top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
			return !!top && (e.contains(top) || top.contains(e) && top.localName === "label");
		};
		if (!open()) e.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
		return open() && (e.click(), true);
	})(` + element + `)`)
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if done, err := clicked(ctx, t); err == nil && done {
				return nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("click %s: %w", element, ctx.Err())
			}
		}
	})
}

func (tb *tab) say(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.wrong = append(tb.wrong, fmt.Sprintf(format, args...))
}

// patience is the limit of one action and of one condition. A page that lost its server asks again after up to 37 s, and on a busy machine
// everything takes longer.
const patience = 2 * time.Minute

// act carries out one action. A tab as a whole has no limit: how long a test of 60 screens takes depends on the machine and its load.
func act[T any](tb *tab, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// check reports what went wrong since the last check.
func (tb *tab) check(where string) {
	tb.t.Helper()
	refused, err := act(tb, chromedp.Evaluate[[]string](`(window.refused || []).splice(0)`))
	if err == nil {
		for _, r := range refused {
			tb.t.Errorf("%s: the policy refused %s", where, r)
		}
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, w := range tb.wrong {
		tb.t.Errorf("%s: %s", where, w)
	}
	tb.wrong = nil
}

func (tb *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	for _, action := range actions {
		if _, err := act(tb, action); err != nil {
			tb.t.Fatalf("%s: %v\n%s", what, err, tb.text())
		}
	}
}

// text returns what the tab shows.
func (tb *tab) text() string {
	ctx, cancel := context.WithTimeout(tb.ctx, 5*time.Second)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + '\n' + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return s
}

// hide puts the tab into the background, or brings it back.
func (tb *tab) hide(hidden bool) {
	tb.t.Helper()
	eval[any](tb, fmt.Sprintf(`Object.defineProperty(document, 'hidden', {configurable: true, get: () => %t}); document.dispatchEvent(new Event('visibilitychange'))`, hidden))
}

const forced = "forced colours"

// as sets theme and width. The theme forced is that of a system that forces its colours.
func (tb *tab) as(theme string, width int64) {
	tb.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if theme == forced {
		features[0].Value = "dark"
		features = append(features, &emulation.MediaFeature{Name: "forced-colors", Value: "active"})
	}
	tb.do("set theme and width", command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}),
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 800, DeviceScaleFactor: 1, Mobile: width < 500}))
}

// eval runs an expression in the page and waits for its promise.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	v, err := act(tb, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("%.80s: %v\n%s", expression, err, tb.text())
	}
	return v
}

// see waits until the page shows a text.
func (tb *tab) see(text string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf("the page shows %q", text), fmt.Sprintf(`document.body.innerText.includes(%s)`, quote(text)))
}

// until waits for a condition in the page. It polls from the test: code that polls inside the page would need a policy that allows strings
// as code.
func (tb *tab) until(what, condition string) {
	tb.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := act(tb, chromedp.Evaluate[bool](`!!document.body && `+condition)); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			tb.t.Fatalf("not so: %s\n%s", what, tb.text())
		}
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string can always be encoded as JSON
	return string(b)
}

//go:embed testdata/axe.min.js
var axe string

// ruled lists the groups of axe's rules that the page must satisfy.
const ruled = `['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']`

// accessible runs axe on the shown page.
func (tb *tab) accessible(where string) {
	tb.t.Helper()
	if !eval[bool](tb, `typeof window.axe === 'object'`) {
		eval[bool](tb, axe+"\n;true")
	}
	found := eval[[]string](tb, `axe.run(document, {runOnly: `+ruled+`, resultTypes: ['violations']}).then((r) =>
		r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary.replace(/\s+/g, ' ') + ' ' + n.html.slice(0, 160))))`)
	if len(found) > 0 {
		tb.t.Errorf("%s: axe found\n  %s", where, strings.Join(found, "\n  "))
	}
}

var only = flag.String("screens", "", "only screens whose name has this")

var shots = flag.String("shots", "", "directory for pictures of the screens")

// shot saves a picture of the shown page, if pictures were requested.
func (tb *tab) shot(where string) {
	tb.t.Helper()
	if *shots == "" {
		return
	}
	b, err := act(tb, chromedp.FullScreenshot(100))
	if err != nil {
		tb.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, strings.NewReplacer(", ", "-", " ", "-").Replace(where)+".png"), b, 0o600); err != nil {
		tb.t.Fatal(err)
	}
}

// fits reports elements that make the page wider than its window, and table cells drawn over their neighbours.
func (tb *tab) fits(where string) {
	tb.t.Helper()
	sizes := eval[[]int](tb, `[document.documentElement.scrollWidth, innerWidth, document.querySelectorAll('*').length]`)
	if sizes[0] > sizes[1] {
		tb.t.Errorf("%s: the page is %d px wide in a window of %d px", where, sizes[0], sizes[1])
	}
	over := eval[[]string](tb, `[...document.querySelectorAll('td, th')].filter((c) => c.scrollWidth > c.clientWidth + 1 && getComputedStyle(c.parentElement.parentElement).position !== 'absolute' && getComputedStyle(c).overflowX === 'visible').map((c) => c.innerText + ' (' + c.scrollWidth + ' px in ' + c.clientWidth + ')').slice(0, 5)`)
	if len(over) > 0 {
		tb.t.Errorf("%s: cells reach over their neighbours: %q", where, over)
	}
	if sizes[2] > 2500 {
		tb.t.Errorf("%s: %d elements", where, sizes[2])
	}
}
