package browser

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

const workflow = `
name: fan
description: Three tasks, one of them for each item
input:
  type: object
  properties:
    n: {type: integer, default: 3, description: How many}
    word: {type: string}
tasks:
  list: {action: noop, with: {value: [1, 2, 3]}}
  each:
    needs: list
    foreach: [1, 2, 3, 4, 5]
    action: noop
    with: {value: "${{ item }}"}
  last: {needs: each, action: noop}
`

const graded = `{"language": "bash", "source": "read n; echo $((n * 2))", "labels": {"team": "docs"},
	"cases": [{"stdin": "1", "expect": "2"}, {"name": "second", "stdin": "2", "expect": "5"}], "limits": {"wall": "20s", "memory": "256MB"}, "wait": "60s"}`

const twice = `
name: twice
description: The first version
tasks:
  fetch: {action: noop}
  check: {needs: fetch, action: noop}
  pack: {needs: check, action: noop}
  ship: {needs: [pack, fetch], action: noop}
`

// twiceLater is its second version: one task is removed, one added, and two are changed.
const twiceLater = `
name: twice
description: The second version
tasks:
  fetch: {action: noop}
  check: {needs: fetch, action: noop, with: {value: 2}}
  sign: {needs: check, action: noop}
  ship: {needs: [sign, fetch], action: noop}
`

const nightly = `
kind: schedule
name: nightly
cron: ["30 2 * * *", "0 12 * * sun"]
zone: Europe/Berlin
run: {action: fan}
`

const reacts = `
kind: rule
name: each-alert
on: [alert.fired]
if: signal.data.severity == "page"
run: {action: sleep, input: {for: 1h}}
---
kind: webhook
name: github
verify: {scheme: github, secret_env: [GITHUB_SECRET]}
trigger: github.${{ headers["x-github-event"] }}
`

// filled returns a server with content for every screen, and the paths of the screens.
func filled(t *testing.T, store string) (*server, map[string]string) {
	t.Helper()
	s := serveOn(t, "", store)
	s.call(t, http.MethodPost, "/api/v1/definitions", workflow)
	s.call(t, http.MethodPost, "/api/v1/definitions", twice)
	s.call(t, http.MethodPost, "/api/v1/definitions", twiceLater)
	s.call(t, http.MethodPut, "/api/v1/definitions/twice/aliases/stable", `{"to": [{"version": 1}], "by": "ann", "reason": "the first one"}`)
	s.call(t, http.MethodPut, "/api/v1/definitions/twice/aliases/stable", `{"to": [{"version": 1}, {"version": 2, "percent": 12.5}], "by": "ann", "reason": "one of eight tries it"}`)
	s.call(t, http.MethodPut, "/api/v1/definitions/twice/aliases/next", `{"to": [{"version": 2}], "by": "bob"}`)
	s.call(t, http.MethodPost, "/api/v1/definitions", nightly)
	s.call(t, http.MethodPost, "/api/v1/schedules/nightly/fire", "")
	s.call(t, http.MethodPost, "/api/v1/definitions", reacts)
	signal := s.call(t, http.MethodPost, "/api/v1/signals", `{"trigger": "alert.fired", "key": "a-1", "subject": "db1", "data": {"severity": "page", "n": 900719925474099312345}}`)
	at := map[string]string{
		"executions": "executions", "no match": "executions?label=no%3Dsuch", "filtered": "executions?status=failed&status=running", "new code": "new", "new action": "new?action=fan", "register": "register", "change": "register?from=fan%401",
		"definitions": "definitions", "definition": "definitions/fan", "versions": "definitions/twice", "work": "work", "server": "server", "schedules": "schedules", "schedule": "schedules/nightly", "questions": "questions", "nowhere": "nowhere",
		"rules": "rules", "rule": "rules/each-alert", "signals": "signals", "no signals": "signals?trigger=other", "signal": fmt.Sprint("signals/", signal["signal"]), "webhooks": "webhooks", "webhook": "webhooks/github", "no execution": "executions/ex_0000000000000000000000000",
	}
	add := func(name, id string, tabs ...string) {
		for _, tab := range tabs {
			at[name+" "+tab] = "executions/" + id + "/" + tab
		}
	}
	add("workflow", s.submit(t, "/api/v1/executions?wait=60s", `{"action": "fan"}`), "tasks", "output", "history", "input")
	at["replay"] = at["workflow tasks"] + "?at=6"
	at["workflow timeline"] = at["workflow tasks"] + "?view=timeline"
	at["workflow by worker"] = at["workflow timeline"] + "&by=worker"
	cases := s.submit(t, "/api/v1/evaluations", graded)
	add("cases", cases, "result", "logs", "history", "input")
	other := s.submit(t, "/api/v1/evaluations", strings.ReplaceAll(strings.Replace(graded, "n * 2", "n + 1", 1), "docs", "ops"))
	at["compare with"] = "compare?a=" + cases
	for _, part := range []string{"fields", "input", "output", "logs"} {
		at["compare "+part] = "compare?a=" + cases + "&b=" + other + "&show=" + part
	}
	batch(t, s)
	alike(t, s, "alike", "echo ok", "read n; [ $n = 2 ] && echo no || echo ok")
	for name, query := range map[string]string{"batches": "", "batch": "?of=run%3D1", "batches compared": "?of=run%3D2&against=run%3D1", "batches flipped": "?of=run%3D2&against=run%3D1&show=flips",
		"batch pivot": "?of=run%3D2&rows=label%3Amodel&cols=label%3Awho", "batch shares": "?of=run%3D2&rows=label%3Amodel", "no batch": "?of=no%3Dsuch", "batch folded": "?of=run%3Dalike"} {
		at[name] = "batches" + query
	}
	again := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "fan", "input": {"n": 4}}`)
	at["compare tasks"] = "compare?a=" + strings.Split(at["workflow tasks"], "/")[1] + "&b=" + again
	add("program", s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "printf '\\033[1;32mgreen\\033[0m\\n'; echo no >&2; echo x > out.txt; exit 3", "collect": ["out.txt"], "wait": "60s"}`), "result", "logs")
	console := s.submit(t, "/api/v1/evaluations", map[string]any{"language": "python", "interactive": true, "source": "name = input('Your name? ')\nprint('Hello', name)\nn = input('A number? ')", "limits": map[string]any{"wall": "10m"}})
	s.call(t, http.MethodPost, "/api/v1/executions/"+console+"/stdin", "Ann\n")
	add("console", console, "logs")
	add("waiting", s.submit(t, "/api/v1/executions", `{"action": "noop", "not_before": "2099-01-01T00:00:00Z"}`), "why", "history")
	const keyed = `{"action": "sleep", "input": {"for": "1h"}, "labels": {"user": "ann"}, "concurrency": {"key": "deploy/prod", "limit": 1}}`
	s.submit(t, "/api/v1/executions", keyed)
	add("in line", s.submit(t, "/api/v1/executions", keyed), "why")
	s.submit(t, "/api/v1/executions", `{"action": "noop", "worker_labels": {"gpu": "a100"}}`)
	at["work key"], at["work queue"] = "work?key=deploy%2Fprod", "work?queue=default"
	add("sleeping", s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`), "why")
	return s, at
}

// batch submits two batches of four programs with three cases each, by two models. In the second batch one program is better and one worse.
func batch(t *testing.T, s *server) {
	t.Helper()
	programs := map[string][2]string{"double": {"echo $((n * 2))", "echo $((n * 2))"}, "square": {"echo $((n * n))", "echo $((n + n))"}, "slow": {"echo $((2 * n))", "exit 7"}, "silent": {"exit 9", "false"}}
	for run := range 2 {
		var all []any
		for who, source := range programs {
			for _, model := range []string{"small", "large"} {
				all = append(all, map[string]any{"language": "bash", "source": "read n; " + source[run], "labels": map[string]string{"run": fmt.Sprint(run + 1), "who": who, "model": model},
					"cases": []any{map[string]any{"stdin": "1", "expect": "2"}, map[string]any{"stdin": "2", "expect": "4"}, map[string]any{"name": "=large", "stdin": "300", "expect": "600"}}})
			}
		}
		s.call(t, http.MethodPost, "/api/v1/evaluations:batch", map[string]any{"evaluations": all})
		s.endAll(t, fmt.Sprint("run%3D", run+1))
	}
}

// alike submits a batch of two programs with ten cases, of which six expect ok and four no.
func alike(t *testing.T, s *server, run, ann, bob string) {
	t.Helper()
	cases := make([]any, 10)
	for i := range cases {
		expect := []string{"ok", "ok", "no", "ok", "no", "no", "ok", "ok", "no", "ok"}[i]
		cases[i] = map[string]any{"name": fmt.Sprint("case ", i), "stdin": fmt.Sprint(i), "expect": expect}
	}
	s.call(t, http.MethodPost, "/api/v1/evaluations:batch", map[string]any{"evaluations": []any{
		map[string]any{"language": "bash", "source": ann, "labels": map[string]string{"run": run, "who": "ann"}, "cases": cases},
		map[string]any{"language": "bash", "source": bob, "labels": map[string]string{"run": run, "who": "bob"}, "cases": cases}}})
	s.endAll(t, "run%3D"+run)
}

// shows maps each screen to a text that it must show once it has loaded.
var shows = map[string]string{
	"executions": "fan@1", "no match": "Nothing matches", "filtered": "code", "new code": "Program", "new action": "How many", "register": "Begin with an example", "change": "Nothing is wrong with workflow fan", "definitions": "fan", "definition": "for each item", "versions": "pack",
	"replay": "after the first", "batches": "run=2", "batch": "14 of 24 cases passed", "batches compared": "4 better", "batches flipped": "6 worse", "batch pivot": "4 of 8 executions passed", "batch shares": "2/4", "no batch": "Nothing has this label", "batch folded": "6 cases that all pass",
	"compare with": "The latest of code", "compare fields": "differ", "compare input": "alike", "compare output": "alike", "compare logs": "case second", "compare tasks": "3 tasks",
	"work": "in the server", "work key": "Waiting, in the order in which they go", "work queue": "for workers with", "in line why": "What that waits for in turn", "server": "ended on this server in the last hour", "nowhere": "There is no such page", "no execution": "All executions", "workflow tasks": "5 of 5 items", "workflow output": "No output", "workflow history": "complete",
	"workflow input": "Input", "workflow timeline": "the colour is how it ended", "workflow by worker": "lost with its worker", "schedules": "Europe/Berlin", "schedule": "by hand", "questions": "Nobody is asked", "cases result": "What was used is not measured", "cases logs": "case second", "cases history": "complete", "cases input": "Program", "program result": "out.txt",
	"rules": "each-alert", "rule": "What it has made of signals", "signals": "db1", "no signals": "Nothing matches", "signal": "900719925474099312345", "webhooks": "/hooks/github", "webhook": "Refused lately",
	"program logs": "green", "console logs": "A number?", "waiting why": "What would unblock it", "waiting history": "following", "sleeping why": "What would unblock it",
}

// look is a theme and a window width.
type look struct {
	theme string
	width int64
}

// telling are the screens that use shapes and colours most.
var telling = []string{"executions", "workflow tasks", "workflow timeline", "cases result", "batches flipped", "in line why", "work", "replay", "versions"}

// Every screen, in both themes, at full, half and narrow width, shows its content, stays within its window, and breaks no rule of axe and
// no line of the policy. Some are also shown with forced colours. On PostgreSQL each is shown once, without axe: the content may differ by
// store, the drawing does not.
func TestScreens(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s, at := filled(t, store)
		looks := []look{{"light", 1280}, {"dark", 1280}, {"light", 820}, {"light", 360}, {forced, 1280}}
		if store != "sqlite" {
			looks = []look{{"dark", 360}}
		}
		for _, l := range looks {
			t.Run(fmt.Sprintf("%s %d px", l.theme, l.width), func(t *testing.T) {
				t.Parallel()
				walk(t, s, at, l, store == "sqlite")
			})
		}
	})
}

// painted is a function of the page. It reports whether an element without words is visible: by its border, by a background that differs
// from the one behind it, or by the outline of its row.
const painted = `(e) => {
	const none = (c) => c === 'transparent' || /, 0\)$/.test(c);
	const behind = (o) => { for (; o; o = o.parentElement) { const c = getComputedStyle(o).backgroundColor; if (!none(c)) return c; } return 'the canvas'; };
	const [c, under] = [getComputedStyle(e), behind(e.parentElement)];
	return ['Top', 'Right', 'Bottom', 'Left'].some((s) => c['border' + s + 'Style'] !== 'none' && parseFloat(c['border' + s + 'Width']) > 0 && !none(c['border' + s + 'Color']) && c['border' + s + 'Color'] !== under)
		|| !none(c.backgroundColor) && c.backgroundColor !== under || parseFloat(getComputedStyle(e.closest('tr') || e).outlineWidth) > 0 && getComputedStyle(e.closest('tr') || e).outlineStyle !== 'none';
}`

// Elements that mean something by their background alone (bars, dots, cells) are visible on every screen when the system forces its
// colours.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	s, at := filled(t, "sqlite")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	marked := 0
	for name, path := range at {
		if !strings.Contains(name, *only) {
			continue
		}
		tb.as("dark", 1280)
		tb.do(name, chromedp.Navigate(s.url+"/ui/"+path))
		tb.see(shows[name])
		marked += eval[int](tb, `(() => { const painted = `+painted+`; window.marked = [...document.querySelectorAll('#page *')].filter((e) => e instanceof HTMLElement && e.childElementCount === 0 && e.textContent.trim() === ''
			&& !/^(INPUT|TEXTAREA|SELECT|CANVAS|IMG|OPTION)$/.test(e.tagName) && e.offsetWidth >= 3 && e.offsetHeight >= 3 && painted(e)); return window.marked.length; })()`)
		tb.as(forced, 1280)
		tb.until("colours are forced", `matchMedia('(forced-colors: active)').matches`)
		lost := eval[[]string](tb, `(() => { const painted = `+painted+`; return window.marked.filter((e) => e.isConnected && e.offsetWidth >= 3 && e.offsetHeight >= 3 && !painted(e)).slice(0, 5).map((e) => e.parentElement.outerHTML.slice(0, 200)); })()`)
		if len(lost) > 0 {
			t.Errorf("%s: with forced colours these are not seen:\n  %s", name, strings.Join(lost, "\n  "))
		}
		tb.accessible(name + " with forced colours")
		tb.shot(name + " forced")
	}
	if *only == "" && marked < 20 {
		t.Errorf("%d elements without words were looked at", marked)
	}
}

// walk opens every screen, and runs axe on it if axe is set.
func walk(t *testing.T, s *server, at map[string]string, l look, axe bool) {
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as(l.theme, l.width)
	for name, path := range at {
		if !strings.Contains(name, *only) || l.theme == forced && !slices.Contains(telling, name) {
			continue
		}
		where := fmt.Sprintf("%s, %s, %d px", name, l.theme, l.width)
		tb.do(where, chromedp.Navigate(s.url+"/ui/"+path))
		if shows[name] == "" {
			t.Fatalf("%s: what must it show?", name)
		}
		tb.see(shows[name])
		tb.fits(where)
		if l.theme == forced && !eval[bool](tb, `matchMedia('(forced-colors: active)').matches`) {
			t.Fatal("the browser forces no colours")
		}
		if axe {
			tb.accessible(where)
		}
		tb.check(where)
		tb.shot(where)
	}
}

func TestEmptyServer(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	for path, text := range map[string]string{"": "Nothing has run yet", "definitions": "Nothing is registered", "work": "No key is in use", "schedules": "No schedules", "questions": "Nobody is asked"} {
		tb.do(path, chromedp.Navigate(s.url+"/ui/"+path))
		tb.see(text)
		tb.accessible("empty " + path)
		tb.check("empty " + path)
	}
	if left := eval[[]string](tb, `document.featurePolicy.allowedFeatures().filter((f) => /^(accelerometer|bluetooth|camera|clipboard-read|display-capture|fullscreen|geolocation|gyroscope|hid|idle-detection|local-fonts|magnetometer|microphone|midi|payment|publickey-credentials-create|publickey-credentials-get|screen-wake-lock|serial|storage-access|usb|web-share|window-management)$/.test(f))`); len(left) > 0 {
		t.Errorf("the page may still use %q", left)
	}
	if !eval[bool](tb, `document.featurePolicy.allowsFeature('clipboard-write')`) {
		t.Error("the page may copy nothing")
	}
}

// Behind a proxy that serves Pawl under a path of its own, links, assets and the API work, also after navigation.
func TestSubpath(t *testing.T) {
	t.Parallel()
	s, at := filled(t, "sqlite")
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/x/pawl/", http.StripPrefix("/x/pawl", httputil.NewSingleHostReverseProxy(target)))
	proxy := httptest.NewServer(mux)
	t.Cleanup(proxy.Close) // before the tab's clean-up, whose streams it would wait for
	tb := open(t, strings.TrimPrefix(proxy.URL, "http://"))
	tb.do("the root", chromedp.Navigate(proxy.URL+"/x/pawl/"))
	tb.see("fan@1")
	tb.do("open an execution", click(`a[href*="executions/ex_"]`))
	tb.until("the address is below the prefix", `location.pathname.startsWith('/x/pawl/ui/executions/ex_')`)
	tb.do("open its history", click(`nav.tabs a[href$="/history"]`))
	tb.see("no gap")
	for _, name := range []string{"cases result", "program logs", "definition", "work"} {
		tb.do(name, chromedp.Navigate(proxy.URL+"/x/pawl/ui/"+at[name]))
		tb.see(shows[name])
		tb.check(name)
	}
	tb.do("go back", chromedp.Navigate(proxy.URL+"/x/pawl/ui/"+at["cases result"]), click(`.side nav a[href="work"]`), chromedp.NavigateBack())
	tb.see(shows["cases result"])
}

// The page recovers when a file of its first load fails once, because the network changes or a proxy has no server behind it. It does not
// stay empty or unstyled.
func TestFileThatDidNotCome(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	for _, file := range []string{"/app/boot.js", "/part/kit.js", "/css/pawl.css"} {
		var asked atomic.Int32
		proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			if strings.HasSuffix(r.URL.Path, file) && asked.Add(1) == 1 {
				http.Error(w, "bad gateway", http.StatusBadGateway)
				return
			}
			forward.ServeHTTP(w, r)
		})
		tb := open(t, strings.TrimPrefix(proxy, "http://"))
		tb.do("open", chromedp.Navigate(proxy+"/ui/executions"))
		tb.see("Nothing has run yet")
		tb.until("the style is there after "+file, `getComputedStyle(document.body).margin === '0px'`)
		tb.check(file)
	}
}

// A part of the page is drawn even when its module arrives between the first drawing, which has nothing to show yet, and the effect that
// requests it. People who navigated on and back while a screen was fetched saw "Loading …" for good.
func TestPartComesBetweenDrawings(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("Nothing has run yet")
	if !eval[bool](tb, `(async () => {
		const base = document.querySelector('script[src$="app/boot.js"]').src.replace('app/boot.js', '');
		const [{ lazy }, { h, render }] = await Promise.all(['app/lazy.js', 'vendor/preact.js'].map((file) => import(base + file)));
		const asked = Promise.withResolvers(), comes = Promise.withResolvers();
		const Part = lazy(() => (asked.resolve(), comes.promise));
		const [first, second] = [0, 0].map(() => document.body.appendChild(document.createElement('div')));
		render(h(Part), first);
		await asked.promise;
		comes.resolve(() => 'it is here');
		render(h(Part), second); // before the first Part continues with its view
		window.second = second;
		return second.textContent.includes('Loading');
	})()`) {
		t.Error("the second was not drawn before its part came")
	}
	tb.until("the part is drawn", `window.second.textContent === 'it is here'`)
}

// With tokens configured, the page asks for one, sends it, and forgets it on request. After too many wrong tokens it says how long to wait.
func TestToken(t *testing.T) {
	t.Parallel()
	s := serve(t, "0123456789abcdef-token")
	s.submit(t, "/api/v1/executions?wait=30s", `{"action": "noop"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("asks for a token")
	tb.accessible("login")
	tb.do("a wrong token", chromedp.SendKeys("#token", "wrong-token-wrong-token\r"))
	tb.see("the token is none of this server's")
	eval[any](tb, `document.querySelector('#token').select()`)
	tb.do("the token", chromedp.SendKeys("#token", s.token+"\r"))
	tb.see("noop")
	tb.do("load again", chromedp.Reload())
	tb.see("noop")
	tb.press("Log out") // once the page knows that there is a session
	tb.see("asks for a token")
	for range 5 { // requests of a script that guesses tokens, beside the page
		res, err := http.Post(s.url+"/api/v1/session", "application/json", strings.NewReader(`{"token": "wrong-token-wrong-token"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	tb.do("the token, now too late", chromedp.SendKeys("#token", s.token+"\r"))
	tb.see("5 logins from this address failed within a minute: try again in")
	tb.accessible("a refused login")
}

// A queue is paused for a while and resumed on the page; a wrong span is refused in the dialog.
func TestPauseQueue(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/work"))
	tb.see("Queues")
	tb.until("the queue has an order", `!!document.querySelector('button[aria-label="Pause: default"]')`)
	tb.do("pause it", click(`button[aria-label="Pause: default"]`), chromedp.SendKeys(`dialog[open] #pause-reason`, "new disks"), chromedp.SendKeys(`dialog[open] #pause-for`, "soon"))
	tb.press("Pause the queue")
	tb.see("soon")
	tb.accessible("a refused pause")
	tb.do("give a span", chromedp.SendKeys(`dialog[open] #pause-for`, strings.Repeat("\b", 4)+"1h"))
	tb.press("Pause the queue")
	tb.see("new disks")
	tb.accessible("a paused queue")
	pauses := s.call(t, http.MethodGet, "/api/v1/pauses", nil)["pauses"].([]any)
	if len(pauses) != 1 || pauses[0].(map[string]any)["until"] == nil {
		t.Errorf("%v", pauses)
	}
	tb.do("resume it", click(`button[aria-label="Resume: default"]`))
	tb.press("Resume the queue")
	tb.until("it is resumed", `!!document.querySelector('button[aria-label="Pause: default"]') && !document.body.innerText.includes('new disks')`)
}

// An action is paused and resumed on the page of its definition, and the list of definitions shows that it is paused.
func TestPauseAction(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "deploy", "kind": "action", "action": "noop"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/definitions/deploy"))
	tb.until("it can be paused", `!!document.querySelector('button[aria-label="Pause: deploy"]')`)
	tb.do("pause it", click(`button[aria-label="Pause: deploy"]`), chromedp.SendKeys(`dialog[open] #pause-reason`, "the region is down"))
	tb.accessible("the dialog to pause a definition")
	tb.press("Pause the definition")
	tb.see("the region is down")
	tb.accessible("a paused definition")
	tb.do("open the list", chromedp.Navigate(s.url+"/ui/definitions"))
	tb.see("paused")
	tb.do("open it again", chromedp.Navigate(s.url+"/ui/definitions/deploy"))
	tb.until("it can be resumed", `!!document.querySelector('button[aria-label="Resume: deploy"]')`)
	tb.do("resume it", click(`button[aria-label="Resume: deploy"]`))
	tb.press("Resume the definition")
	tb.until("it is resumed", `!!document.querySelector('button[aria-label="Pause: deploy"]') && !document.body.innerText.includes('the region is down')`)
}

// A schedule is paused with a reason and resumed from the page.
func TestPauseSchedule(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", strings.Replace(nightly, "fan", "noop", 1))
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/schedules/nightly"))
	tb.see("in ")
	tb.press("Pause")
	tb.see("Pause this schedule?")
	tb.accessible("pause dialog")
	tb.do("a reason", chromedp.SendKeys("#reason", "holidays"))
	tb.press("Pause the schedule")
	tb.see("Paused: holidays")
	tb.press("Resume")
	tb.see("Make up for the missed times")
	tb.press("Resume the schedule")
	tb.until("it has a next time again", `!document.body.textContent.includes('Paused')`)
	tb.check("pause")
}

// An answer that the page has only begun to read must not count as drawn: its headers with the new ETag arrive before the order is
// answered, its body after. Otherwise the request after the order would be answered with "not modified" for as long as the pause lasts.
func TestPauseSeenInHalf(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", "name: half\ntasks:\n  only: {action: sleep, with: {for: 1h}}\n")
	id := s.submit(t, "/api/v1/executions", map[string]any{"action": "half"})
	paused, begun, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var ordered atomic.Bool
	var looks atomic.Int32
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		order, look := strings.HasSuffix(r.URL.Path, "/pause"), 0
		if order {
			ordered.Store(true)
		} else if ordered.Load() && r.URL.Path == "/api/v1/executions/"+id {
			await(r, paused) // the first look after the order sees the pause
			if look = int(looks.Add(1)); look == 2 {
				close(asked)
			}
		}
		if !order && look != 1 {
			forward.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		if order {
			close(paused)
			await(r, begun)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		if look == 1 {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			close(begun)
			await(r, asked)
		}
		_, _ = w.Write(answer.Body.Bytes()) // the page may have left
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.do("open", chromedp.Navigate(proxy+"/ui/executions/"+id))
	button := `button[aria-label="Pause: ` + id + `"]`
	tb.until("it can be paused", `!!document.querySelector('`+button+`')`)
	tb.do("pause it", click(button))
	tb.press("Pause the workflow")
	tb.see("It starts no tasks")
}

// A workflow is paused with a reason and resumed on the page of its execution, and the list shows that it is paused.
func TestPauseExecution(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", "name: later\ntasks:\n  first: {action: sleep, with: {for: 1h}}\n  second: {needs: [first], action: noop}\n")
	id := s.call(t, http.MethodPost, "/api/v1/executions", map[string]any{"action": "later"})["id"].(string)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	button := func(word string) string { return `button[aria-label="` + word + `: ` + id + `"]` }
	tb.until("it can be paused", `!!document.querySelector('`+button("Pause")+`')`)
	tb.do("pause it", click(button("Pause")), chromedp.SendKeys(`dialog[open] #pause-reason`, "the disks are full"))
	tb.do("let its timers stand still", click(`dialog[open] input[type=checkbox]`))
	tb.accessible("pausing a workflow")
	tb.press("Pause the workflow")
	tb.see("It starts no tasks, and its timers stand still.")
	tb.see("the disks are full")
	tb.accessible("a paused workflow")
	tb.check("paused-workflow")
	tb.do("look at the list", chromedp.Navigate(s.url+"/ui/executions?action=later"))
	tb.see("Paused")
	tb.do("go back", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.until("it can be resumed", `!!document.querySelector('`+button("Resume")+`')`)
	tb.do("resume it", click(button("Resume")))
	tb.press("Resume the workflow")
	tb.until("it is resumed", `!!document.querySelector('`+button("Pause")+`') && !document.body.innerText.includes('It starts no tasks')`)
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/cancel", nil)
}
