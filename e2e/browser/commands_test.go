package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/pawl-run/pawl/internal/programtest"
)

// keepsCopies makes the page keep the text that it copies, because a page may not read the clipboard.
const keepsCopies = `(() => { navigator.clipboard.writeText = (t) => { window.copied = t; return Promise.resolve(); }; })()`

// copied returns the command that a button copies.
func (tb *tab) copied(button string) string {
	tb.t.Helper()
	eval[any](tb, keepsCopies)
	eval[any](tb, `(() => { delete window.copied; })()`)
	tb.press(button)
	tb.until("a command is copied", `typeof window.copied === 'string'`)
	return eval[string](tb, `window.copied`)
}

// inBash runs a pasted command in bash and returns its output.
func inBash(t *testing.T, s *server, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash")
	cmd.Stdin = strings.NewReader(command + "\n")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(pawl)+":"+os.Getenv("PATH"), "PAWL_TOKEN="+s.token, "PAWL_CONFIG=", "XDG_CONFIG_HOME="+programtest.ConfigHome(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s\n%.2000s", err, command, out)
	}
	if made, err := os.ReadDir(cmd.Dir); err != nil || len(made) > 0 {
		t.Errorf("the shell has made %v (%v)", made, err)
	}
	return string(out)
}

// nasty holds characters that a shell, a terminal or JSON may interpret.
const nasty = "it's \"quoted\" $(touch a) `touch b` ${HOME} $HOME \\ \\' \\n !! # ; & | > c\n\tsecond line\r\nEOF\n' \u202e\u200b\x1b[31m\x7f é 界 😀 %s @- --flag"

// A request that is copied as a command, curl or pawl run, from an execution or a form, sends the same request when a shell runs it, also with quotes, newlines and $(…) in its texts.
func TestCopyAsCommand(t *testing.T) {
	t.Parallel()
	s := serve(t, "a-token-of-the-test")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("asks for a token")
	tb.do("log in", chromedp.SendKeys("#token", s.token+"\r"))
	tb.see("Nothing has run yet")
	latest := func(label string) map[string]any {
		t.Helper()
		list := s.call(t, http.MethodGet, "/api/v1/executions?limit=1&label="+url.QueryEscape(label), nil)
		return s.call(t, http.MethodGet, "/api/v1/executions/"+list["executions"].([]any)[0].(map[string]any)["id"].(string), nil)
	}
	same := func(what string, a, b map[string]any, fields ...string) {
		t.Helper()
		if a["id"] == b["id"] {
			t.Fatalf("%s: nothing was submitted", what)
		}
		for _, f := range fields {
			if !reflect.DeepEqual(a[f], b[f]) {
				t.Errorf("%s: %s is %#v, and was %#v", what, f, b[f], a[f])
			}
		}
	}
	fields := []string{"action", "input", "labels", "queue", "priority", "timeout", "key", "key_limit"}

	code := s.submit(t, "/api/v1/evaluations", map[string]any{"language": "bash", "wait": "60s", "source": "exit 0\n" + nasty, "stdin": nasty, "labels": map[string]string{"of": "code", "what": "a's $(b), \\"}})
	tb.do("its input", chromedp.Navigate(s.url+"/ui/executions/"+code+"/input"))
	tb.see("Standard input")
	for _, button := range []string{"Copy as curl", "Copy as CLI"} {
		command := tb.copied(button)
		if strings.ContainsFunc(command, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
			t.Errorf("%s: not of printable ASCII: %q", button, command)
		}
		if strings.Contains(command, s.token) {
			t.Errorf("%s has the token: %q", button, command)
		}
		inBash(t, s, command)
		same(button, s.call(t, http.MethodGet, "/api/v1/executions/"+code, nil), latest("of=code"), fields...)
	}
	tb.accessible("an input with commands")

	// A command passes a long body through its standard input, a number keeps its digits, and the page says which fields pawl run has no flag
	// for.
	long := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "noop", "labels": {"of": "long"}, "priority": 3, "timeout": "90s", "concurrency": {"key": "a key's", "limit": 2}, "input": {"n": 12345678901234567890.10, "text": `+quote(strings.Repeat(nasty, 2000))+`}}`)
	tb.do("its input", chromedp.Navigate(s.url+"/ui/executions/"+long+"/input"))
	tb.see("12345678901234567890.10")
	inBash(t, s, tb.copied("Copy as curl"))
	same("a long one", s.call(t, http.MethodGet, "/api/v1/executions/"+long, nil), latest("of=long"), fields...)
	if text := s.text(t, http.MethodGet, fmt.Sprint("/api/v1/executions/", latest("of=long")["id"]), nil); !strings.Contains(text, "12345678901234567890.10") {
		t.Error("a number has lost digits")
	}
	tb.press("Copy as CLI")
	tb.see("pawl run has no flag for priority")

	// A key, a rate and the cache are flags.
	limited := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "noop", "labels": {"of": "limited"}, "no_cache": true, "rate": {"key": "mail's = $(touch a)", "limit": 100, "per": "90s", "burst": 5, "over": "drop"},
		"concurrency": {"key": "a key's=", "limit": 2, "fair_by": "ann & bob", "weight": 3}}`)
	tb.do("its input", chromedp.Navigate(s.url+"/ui/executions/"+limited+"/input"))
	tb.see("It was submitted without an input")
	inBash(t, s, tb.copied("Copy as CLI"))
	same("with a key and a rate", s.call(t, http.MethodGet, "/api/v1/executions/"+limited, nil), latest("of=limited"), append(fields, "rate", "no_cache", "fair_by", "weight")...)

	// The forms of New.
	tb.do("a program", chromedp.Navigate(s.url+"/ui/new"))
	tb.see("Program")
	fill := func(id, text string) {
		eval[any](tb, `(() => { const e = document.getElementById(`+quote(id)+`); e.value = `+quote(text)+`; e.dispatchEvent(new Event('input', {bubbles: true})); })()`)
	}
	fill("language", "bash")
	fill("source", "exit 0\n"+strings.ReplaceAll(nasty, "\r", ""))
	fill("labels", "of=form")
	tb.until("it is entered", `document.getElementById('labels').value === 'of=form'`)
	inBash(t, s, tb.copied("Copy as curl"))
	first := latest("of=form")
	if got := first["input"].(map[string]any)["source"]; got != "exit 0\n"+strings.ReplaceAll(nasty, "\r", "") {
		t.Errorf("the program is %q", got)
	}
	inBash(t, s, tb.copied("Copy as CLI"))
	same("a form", first, latest("of=form"), fields...)
	tb.fits("New with commands")
	tb.check("commands")
}

// A case of an evaluation runs alone: New opens with the program and that case, by name or by number.
func TestRunCaseAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	more := strings.Replace(graded, `"limits":`, `"stop_on_failure": false, "compare": {"mode": "tokens"}, "limits":`, 1)
	for i, body := range []string{graded, more} { // the form cannot hold the second: it opens as JSON
		id := s.submit(t, "/api/v1/evaluations", body)
		tb.do("its result", chromedp.Navigate(s.url+"/ui/executions/"+id+"/result?case=second"))
		tb.see("Run this case alone")
		tb.accessible("a case")
		tb.press("Run this case alone")
		tb.see("its case second alone")
		if i == 0 {
			tb.until("the form has the program and the case", `document.getElementById('source').value.includes('echo') && document.querySelectorAll('fieldset.case').length === 1 && document.getElementById('in-0').value === '2'`)
		} else {
			tb.until("the JSON has the case", `JSON.parse(document.getElementById('input').value).cases.length === 1`)
		}
		tb.press("Run")
		tb.see("0 of 1 case passed")
		tb.see("second")
		alone := eval[string](tb, `location.pathname.split('/')[3]`)
		x := s.call(t, http.MethodGet, "/api/v1/executions/"+alone+"?wait=60s", nil)
		cases, _ := json.Marshal(x["input"].(map[string]any)["cases"])
		if string(cases) != `[{"expect":"5","name":"second","stdin":"2"}]` {
			t.Errorf("the case that ran: %s", cases)
		}
		tb.do("the case without a name", chromedp.Navigate(s.url+"/ui/new?from="+id+"&case=1"))
		tb.see("its case 1 alone")
		tb.do("no such case", chromedp.Navigate(s.url+"/ui/new?from="+id+"&case=7"))
		tb.see("It has no case 7")
		tb.check("a case alone")
	}
}
