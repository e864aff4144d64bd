package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	permissions "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// key presses one key as a keyboard does: the browser drops the character of a key whose first event the page has handled.
func (tb *tab) key(what, key string) {
	tb.t.Helper()
	tb.do(what, chromedp.KeyEvent(key, func(e *input.DispatchKeyEventParams) {
		if e.Type == kb.KeyDown {
			e.Type = kb.KeyRawDown
		}
	}))
}

// With keys alone, rows are marked, the question is opened and closed, and the marked executions are cancelled together; no other row is.
func TestKeysOfTheList(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	var ids []string
	for _, name := range []string{"first", "second", "third"} {
		ids = append(ids, s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}, "labels": {"name": "`+name+`"}}`))
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions?action=sleep"))
	tb.until("the rows are there", `document.querySelectorAll('table.runs tbody tr').length === 3`)
	tb.key("the first row", "j")
	tb.do("allow the clipboard", command(permissions.SetPermission, permissions.SetPermissionParams{Permission: &permissions.PermissionDescriptor{Name: "clipboard-write"}, Setting: permissions.PermissionSettingGranted, Origin: s.url}))
	eval[any](tb, `new MutationObserver(([m]) => { window.said ||= m.target.textContent; }).observe(document.querySelector('.said'), {childList: true, subtree: true, characterData: true})`)
	tb.key("copy its id", "y")
	tb.until("the page says so, for 4 s", `window.said?.startsWith('Copied ex_')`)
	// The page may not read the clipboard, so the test pastes into a field and then gives the focus back to the row.
	eval[any](tb, `window.row = document.activeElement; document.querySelector('input[aria-label=Action]').focus(); document.activeElement.select()`)
	tb.do("paste", command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "v", Modifiers: 2, Commands: []string{"paste"}}))
	tb.until("what was copied is the id", `document.activeElement.value === `+quote(ids[2]))
	eval[any](tb, `document.activeElement.value = 'sleep'; window.row.focus()`)
	tb.key("mark it", "x")
	tb.see("1 marked")
	tb.accessible("a row that is marked")
	tb.key("unmark it", "x")
	tb.until("nothing is marked", `!document.querySelector('.marked')`)
	tb.key("ask about the row", "c")
	tb.see("Cancel 1 execution?")
	tb.key("leave it", kb.Escape)
	tb.until("the dialog is closed", `!document.querySelector('dialog[open]')`)
	tb.key("the next row", "j")
	tb.key("mark it too", "x")
	tb.see("2 marked")
	tb.fits("two rows that are marked")
	tb.shot("marked")
	tb.key("ask about both", "c")
	tb.see("Cancel 2 executions?")
	tb.press("Cancel 2 executions")
	tb.see("2 cancelled, or ordered to end")
	tb.press("Close")
	tb.until("two are cancelled", `[...document.querySelectorAll('table.runs tbody tr')].filter((r) => r.innerText.includes('Cancelled')).length === 2 && !document.querySelector('.marked')`)
	tb.until("the third sleeps on", `[...document.querySelectorAll('table.runs tbody tr')].some((r) => r.innerText.includes('first') && r.innerText.includes('Sleeping'))`)
	tb.until("nothing is asked", `!document.querySelector('dialog[open]')`)
	tb.key("the first row again", "j")
	tb.key("ask to run it again", "r")
	tb.see("Run again 1 execution?")
	tb.key("leave that", kb.Escape)
	tb.until("the dialog is closed", `!document.querySelector('dialog[open]')`)
	tb.key("clear the mark", kb.Escape)
	tb.until("nothing is marked", `!document.querySelector('.marked')`)
	tb.key("why the last one waits", "j")
	tb.key("why the last one waits", "j")
	tb.key("why the last one waits", "w")
	tb.until("its screen is there", `/\/ui\/executions\/ex_[^/]+\/why$/.test(location.pathname)`)
	tb.check("keys of the list")
}

// The list learns that the marked executions have ended before the order is answered: the question stays open, and reports the result for
// each.
func TestEndsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	ended := make(chan struct{})
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if !strings.HasSuffix(r.URL.Path, ":cancel") {
			forward.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		if strings.Contains(answer.Body.String(), `"cancelled"`) {
			await(r, ended)
		}
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.do("open", chromedp.Navigate(proxy+"/ui/executions?action=sleep"))
	tb.until("the row is there", `document.querySelectorAll('table.runs tbody tr').length === 1`)
	tb.key("the row", "j")
	tb.key("mark it", "x")
	tb.see("1 marked")
	tb.key("ask about it", "c")
	tb.see("Cancel 1 execution?")
	tb.press("Cancel 1 execution")
	tb.until("the list shows that it has ended", `document.querySelector('table.runs tbody tr').innerText.includes('Cancelled')`)
	close(ended)
	tb.see("1 cancelled, or ordered to end")
	tb.press("Close")
	tb.until("nothing is marked or asked", `!document.querySelector('.marked, dialog[open]')`)
	tb.check("what ends before the answer")
}

// On the screen of an execution keys lead to its tabs, to its neighbours in the list and back to the list as it was filtered, and give its orders.
func TestKeysOfAnExecution(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	var ids []string
	for range 3 {
		ids = append(ids, s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`))
	}
	code := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "seq 1 2000", "wait": "60s"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	at := func(id, tab string) {
		t.Helper()
		tb.until(tab+" of "+id, fmt.Sprintf(`location.pathname.includes(%s) && document.querySelector('nav.tabs [aria-current=page]')?.innerText === %s`, quote(id), quote(tab)))
	}
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions?action=sleep"))
	tb.until("the rows are there", `document.querySelectorAll('table.runs tbody tr').length === 3`)
	tb.key("the newest", "j")
	tb.key("open it", kb.Enter)
	at(ids[2], "Why")
	tb.key("the one after it", "]")
	at(ids[1], "Why")
	tb.until("there is one on both sides", `document.querySelectorAll('a.step').length === 2`)
	tb.accessible("an execution between two")
	tb.key("the one after it", "]")
	at(ids[0], "Why")
	tb.key("there is none after that", "]")
	tb.key("the one before it", "[")
	at(ids[1], "Why")
	tb.key("ask to cancel it", "c")
	tb.see("Cancel this execution?")
	tb.key("leave it", kb.Escape)
	tb.until("the dialog is closed", `!document.querySelector('dialog[open]')`)
	at(ids[1], "Why")
	// Until the next frame, the field of a closed dialog still has the focus. A key pressed that fast must already act on the screen.
	tb.key("ask to cancel it", "c")
	tb.until("its field has the focus", `document.activeElement?.matches('dialog[open] #reason')`)
	eval[any](tb, `document.querySelector('dialog[open]').close(); document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))`)
	tb.until("the list has its filter", `location.pathname.endsWith('/executions') && location.search === '?action=sleep'`)
	tb.until("the rows are there", `document.querySelectorAll('table.runs tbody tr').length === 3`)

	tb.do("a program", chromedp.Navigate(s.url+"/ui/executions/"+code))
	at(code, "Result")
	tb.key("its logs", "f")
	at(code, "Logs")
	tb.see("2000")
	eval[any](tb, `document.querySelector('.logview').scrollTop = 0`)
	tb.until("the end is out of sight", `[...document.querySelectorAll('button')].some((b) => b.innerText === 'To the end')`)
	tb.key("to the end", "f")
	tb.until("the end is in sight", `[...document.querySelectorAll('.logrow')].some((r) => r.innerText.includes('2000')) && ![...document.querySelectorAll('button')].some((b) => b.innerText === 'To the end')`)
	tb.key("ask to run it again", "r")
	tb.see("Run it again?")
	tb.key("leave it", kb.Escape)
	tb.check("keys of an execution")
}

// The items of a task are neighbours, also when the address of one of them was opened directly.
func TestNeighboursAmongItems(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "few", "tasks": {"each": {"foreach": [1, 2, 3], "action": "noop"}}}`)
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "few"}`)
	rows := s.call(t, http.MethodGet, "/api/v1/executions?workflow="+id, nil)["executions"].([]any)
	items := map[int]string{}
	for _, r := range rows {
		x := r.(map[string]any)
		index, _ := x["index"].(float64)
		items[int(index)] = x["id"].(string)
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open the second", chromedp.Navigate(s.url+"/ui/executions/"+items[1]))
	tb.until("it has neighbours", `document.querySelectorAll('a.step').length === 2`)
	tb.key("the one after it", "]")
	tb.until("the third is shown", `location.pathname.includes(`+quote(items[2])+`)`)
	tb.until("there is none behind it", `document.querySelectorAll('a.step').length === 1`)
	tb.key("the one before it", "[")
	tb.until("the second is shown", `location.pathname.includes(`+quote(items[1])+`)`)
	tb.check("neighbours")
}

// In a graph the arrow keys follow its edges, and Enter chooses a task.
func TestKeysOfTheGraph(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "fork", "tasks": {"a": {"action": "noop"}, "b": {"needs": "a", "action": "noop"}, "c": {"needs": "b", "action": "noop"}}}`)
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "fork"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.as("light", 1280)
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/tasks"))
	tb.until("the graph is there", `document.querySelectorAll('.graph .node').length === 3`)
	focused := func(task string) {
		t.Helper()
		tb.until("the focus is on "+task, `document.activeElement?.getAttribute('data-task') === `+quote(task))
	}
	eval[any](tb, `document.querySelector('.node[data-task=a]').focus()`)
	tb.key("along the edge", kb.ArrowRight)
	focused("b")
	tb.key("along the next", kb.ArrowRight)
	focused("c")
	tb.key("back", kb.ArrowLeft)
	focused("b")
	tb.key("choose it", kb.Enter)
	tb.until("it is chosen", `new URLSearchParams(location.search).get('task') === 'b'`)
	tb.check("keys of the graph")
}

// Ctrl K finds screens, actions of the screen, definitions and ids, wherever the focus is. Hostile text in it stays text.
func TestSearchOverScreens(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "deploy", "tasks": {"a": {"action": "noop"}}}`)
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("sleep")
	search := func(text string) {
		t.Helper()
		tb.do("search", chromedp.KeyEvent("k", chromedp.KeyModifiers(2))) // 2: Ctrl
		tb.until("the search has the focus", `document.activeElement?.getAttribute('role') === 'combobox'`)
		tb.do("type "+text, chromedp.KeyEvent(text))
	}
	chosen := func(name string) {
		t.Helper()
		tb.until("chosen is "+name, `document.querySelector('[role=option][aria-selected=true]')?.firstElementChild.innerText === `+quote(name))
	}
	eval[any](tb, `document.querySelector('input[aria-label=Action]').focus()`)
	search("run dep")
	chosen("Run deploy")
	tb.accessible("the search")
	tb.shot("search")
	tb.key("take it", kb.Enter)
	tb.until("the form is there", `location.pathname.endsWith('/new') && location.search === '?action=deploy'`)
	search("dep")
	chosen("deploy")
	tb.key("the next", kb.ArrowDown)
	chosen("Run deploy")
	tb.key("the first again", kb.ArrowUp)
	tb.key("take it", kb.Enter)
	tb.until("the definition is there", `location.pathname.endsWith('/definitions/deploy')`)
	search(id)
	chosen("Execution " + id)
	tb.key("take it", kb.Enter)
	tb.see("What would unblock it")
	search("cancel")
	chosen("Cancel")
	tb.key("take it", kb.Enter)
	tb.see("Cancel this execution?")
	// Enter, held down since the search, does not confirm the dialog that the search opened.
	tb.until("its field has the focus", `document.activeElement?.matches('dialog[open] #reason')`)
	eval[any](tb, `addEventListener('submit', () => { window.answered = true; }, true)`)
	held := true
	for range 3 {
		tb.do("hold Enter down", command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, AutoRepeat: &held}),
			command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeChar, Key: "Enter", Text: "\r", AutoRepeat: &held}))
	}
	if eval[bool](tb, `!!window.answered || !document.querySelector('dialog[open] #reason')`) {
		t.Error("Enter that was held down answered the question")
	}
	tb.key("leave it", kb.Escape)
	tb.until("the dialog is closed", `!document.querySelector('dialog[open]')`)
	search("<img src=x onerror=window.pwned=1>")
	tb.until("the text is text", `document.querySelector('[role=option]')?.innerText.includes('onerror') && !document.querySelector('[role=option] img')`)
	tb.key("leave the search", kb.Escape)
	tb.until("the search is closed", `!document.querySelector('dialog[open]')`)
	tb.key("it is the screen's key again", "?")
	tb.see("Mark the row")
	// The browser reports a closed dialog a moment later. The key for the next dialog can be faster, so the event must not close that one.
	next := func(key string, ctrl bool) {
		t.Helper()
		eval[any](tb, fmt.Sprintf(`{
			const d = document.querySelector('dialog[open]');
			window.told = false;
			d.addEventListener('close', () => setTimeout(() => { window.told = true; }, 0));
			d.close();
			document.body.dispatchEvent(new KeyboardEvent('keydown', {key: %q, ctrlKey: %t, bubbles: true}));
		}`, key, ctrl))
		tb.until("the browser told of the closed dialog", `window.told`)
	}
	next("k", true)
	tb.until("the search is there", `document.activeElement?.getAttribute('role') === 'combobox'`)
	next("?", false)
	tb.see("Mark the row")
	next("?", false)
	tb.see("Mark the row")
	for _, width := range []int64{1280, 360} {
		tb.as("dark", width)
		tb.fits("the keys")
		tb.accessible("the keys")
		tb.shot(fmt.Sprintf("keys-%d", width))
	}
	tb.check("search")
}

// A log of two lines is two lines high. A log of many lines has the height of the window, and reaches it while it is written.
func TestHeightOfLogs(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "interactive": true, "source": "echo one; echo two; read x; seq 1 500; read x"}`)
	short := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "echo one; echo two", "wait": "60s"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	high := func(what string, least, most int) {
		t.Helper()
		tb.until(fmt.Sprintf("%s are %d to %d px high", what, least, most), fmt.Sprintf(`((h) => h >= %d && h <= %d)(document.querySelector('.logview').clientHeight)`, least, most))
	}
	tb.as("light", 1280)
	tb.do("two lines", chromedp.Navigate(s.url+"/ui/executions/"+short+"/logs"))
	tb.see("two")
	high("two lines of 18 px", 2*18, 5*18)
	tb.shot("two-lines")
	tb.do("a console", chromedp.Navigate(s.url+"/ui/executions/"+id+"/logs"))
	tb.see("two")
	tb.until("there is a console", `!!document.querySelector('.console')`)
	high("two lines of 18 px above a console", 2*18, 5*18)
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/stdin", "go\n")
	tb.until("the last line is in sight", `[...document.querySelectorAll('.logrow')].some((r) => r.innerText.includes('500') && r.getBoundingClientRect().bottom <= document.querySelector('.logview').getBoundingClientRect().bottom)`)
	high("500 lines in a window of 800 px", 180, 800)
	tb.check("the height of logs")
}

// The console appears below a log that is already shown and takes part of its height: the end of the log stays visible.
func TestConsoleComesBelowALog(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "interactive": true, "source": "seq 1 500; read x"}`)
	console := make(chan struct{})
	proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/console.js") {
			await(r, console)
		}
		forward.ServeHTTP(w, r)
	})
	tb := open(t, strings.TrimPrefix(proxy, "http://"))
	tb.as("light", 1280)
	tb.do("a console", chromedp.Navigate(proxy+"/ui/executions/"+id+"/logs"))
	inSight := `[...document.querySelectorAll('.logrow')].some((r) => r.innerText.includes('500') && r.getBoundingClientRect().bottom <= document.querySelector('.logview').getBoundingClientRect().bottom)`
	tb.until("the last line is in sight", inSight)
	close(console)
	tb.until("the console is there", `!!document.querySelector('.console')`)
	tb.until("the last line is in sight still", inSight)
	// The sent lines also appear above the console's field, possibly in the frame in which the browser reports that the page has scrolled to
	// new lines.
	eval[any](tb, `(() => { const b = document.querySelector('.logview'); b.scrollTop--; b.style.maxHeight = b.clientHeight - 100 + 'px'; })()`)
	eval[any](tb, `new Promise((drawn) => { requestAnimationFrame(() => setTimeout(drawn, 0)); })`)
	tb.until("the last line is in sight all the time", inSight)
	tb.check("a console below a log")
}
