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

// quoteShell quotes for a POSIX shell.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// clip cuts a text to at most n bytes, between characters.
func clip(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// printed drops control characters, which names of cases cannot have.
func printed(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}

// unseen matches characters without a glyph, except variants and joiners, which emoji and some scripts need.
const unseen = `/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu`

// Hostile text is shown as text on every screen: it runs no code, calls no host, adds no element that the templates do not have, and
// characters that change the direction of writing are visible.
func TestHostileText(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	var script strings.Builder
	script.WriteString("mkdir -p d; cd d\n")
	var given []map[string]any // cases that run; those of results that are made up are in results
	var results [2][]map[string]any
	input := map[string]any{}
	for i, h := range hostile {
		fmt.Fprintf(&script, "printf '%%s\\n' %s\nprintf '%%s\\n' %[1]s >&2\n", quoteShell(h))
		if name := strings.ReplaceAll(h, "/", "_"); strings.Trim(name, ".\n\t\r ") != "" && i%4 == 0 {
			fmt.Fprintf(&script, "echo x > ./%s.txt\n", quoteShell(clip(name, 100)))
		}
		if part := hostile[i:min(i+8, len(hostile))]; i%8 == 0 {
			given = append(given, map[string]any{"name": clip(fmt.Sprintf("%d %s", i, strings.Map(printed, h)), 150), "stdin": strings.Join(part, "\n"), "expect": "not " + strings.Join(part, "\n")})
		}
		results[i%2] = append(results[i%2], map[string]any{"name": h, "verdict": "wrong_answer", "stdout": h, "stderr": h, "message": h, "stdout_bytes": len(h), "stderr_bytes": len(h)})
		input[fmt.Sprintf("%d%s", i, h)] = h
	}
	output, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&script, "cd ..; printf '%%b' %s\n", quoteShell(strings.ReplaceAll(fmt.Sprintf("%+q", escapes)[1:], `"`, "")))
	fmt.Fprintf(&script, "echo x > 'd/<img src=x onerror=window.pwned=1>.txt'; printf '%%s' %s > \"$PAWL_OUTPUT\"; exit 1\n", quoteShell(string(output)))
	labels := map[string]string{}
	var labelled, held []any
	for i, h := range hostile {
		if i < 10 {
			labels[fmt.Sprintf("l%d", i)] = clip(h, 60)
		}
		if i%60 == 0 {
			labelled = append(labelled, map[string]any{"action": "noop", "labels": map[string]string{}})
		}
		all := labelled[len(labelled)-1].(map[string]any)["labels"].(map[string]string)
		all[clip(fmt.Sprintf("%d%s", i, h), 60)] = clip(h, 200)
		held = append(held, map[string]any{"action": "sleep", "input": map[string]any{"for": "1h"}, "concurrency": map[string]any{"key": clip(fmt.Sprintf("%d%s", i, h), 60), "limit": 1}})
	}
	all := map[string]string{}
	all["output"] = s.submit(t, "/api/v1/evaluations", map[string]any{"language": "bash", "source": script.String(), "labels": labels, "collect": []string{"d"}, "wait": "60s"})
	all["cases"] = s.submit(t, "/api/v1/evaluations", map[string]any{"language": "bash", "source": "cat", "cases": given, "labels": labels, "wait": "60s"})
	for i, cases := range results {
		all[fmt.Sprint("results ", i)] = s.submit(t, "/api/v1/executions?wait=60s", map[string]any{"action": "noop", "input": map[string]any{"verdict": "wrong_answer", "stdout": strings.Join(hostile, "\n"), "cases": cases}})
	}
	all["input"] = s.submit(t, "/api/v1/executions?wait=60s", map[string]any{"action": "noop", "input": input})
	all["odd"] = s.submit(t, "/api/v1/executions?wait=60s", map[string]any{"action": "noop", "input": map[string]any{"verdict": 1, "stdout": 5, "cases": []any{nil}, "files": 5}})
	signal := s.call(t, http.MethodPost, "/api/v1/signals", map[string]any{"trigger": "hostile", "key": clip(hostile[1], 60), "subject": clip(hostile[0], 60), "data": input})
	fields := map[string]any{}
	for i, h := range hostile[:40] {
		fields[clip(fmt.Sprintf("%d%s", i, h), 60)] = map[string]any{"type": "string", "title": clip(h, 100), "description": clip(h, 100), "enum": []string{clip(h, 100), "other"}}
	}
	all["asked"] = s.submit(t, "/api/v1/executions", map[string]any{"action": "ask", "input": map[string]any{"title": clip(hostile[0], 60), "text": clip(strings.Join(hostile, "\n"), 4000), "form": map[string]any{"type": "object", "properties": fields}}})
	parts, n := []string{""}, 0 // of a description, which may have at most 10,000 bytes
	var plain []string          // texts without an expression
	for _, h := range hostile {
		if n += len(h) + 1; n > 9000 {
			parts, n = append(parts, ""), len(h)+1
		}
		parts[len(parts)-1] += h + "\n"
		if !strings.Contains(h, "${{") {
			plain = append(plain, h)
		}
	}
	for i, part := range parts {
		name := "hostile"
		if i > 0 {
			name += fmt.Sprint("-", i)
		}
		s.call(t, http.MethodPost, "/api/v1/definitions", map[string]any{"name": name, "description": part,
			"input": map[string]any{"type": "object", "properties": map[string]any{"<img src=x onerror=window.pwned=1>": map[string]any{"type": "string", "title": "<b>x</b>", "description": part}}},
			"tasks": map[string]any{"a": map[string]any{"action": "noop", "with": map[string]any{"x": plain}},
				"b": map[string]any{"needs": "a", "action": "code", "with": map[string]any{"language": "bash", "source": "exit 9", "env": map[string]string{"X": "<script>"}}}}})
	}
	all["workflow"] = s.submit(t, "/api/v1/executions?wait=60s", `{"action": "hostile"}`)
	all["cancelled"] = s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	s.call(t, http.MethodPost, "/api/v1/executions/"+all["cancelled"]+"/cancel?wait=20s", map[string]any{"reason": strings.Join(hostile[:20], " ")})

	s.call(t, http.MethodPost, "/api/v1/executions:batch", map[string]any{"executions": append(held, labelled...)})

	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	look := func(where string) {
		t.Helper()
		found := eval[[]string](tb, `[...document.querySelectorAll('script:not([src^="a/"]), iframe, object, embed, style, link:not([href^="a/"]), meta[http-equiv], base ~ base, form[action], img:not([src*="/ui/a/"]), [onerror], [onload], [style*="url"]')].map((e) => e.outerHTML.slice(0, 200))
			.concat(typeof window.pwned === 'undefined' && Object.keys(Object.prototype).length === 0 ? [] : ['it ran']).concat([...document.querySelectorAll('a')].filter((a) => !/^https?:/.test(a.href)).map((a) => 'a link to ' + a.href))
			.concat([document.title, document.body.innerText, ...[...document.querySelectorAll('[title], [aria-label]')].flatMap((e) => [e.title, e.ariaLabel || ''])].flatMap((t) => t.match(`+unseen+`) || []).slice(0, 3).map((m) => 'an invisible mark: ' + JSON.stringify(m) + ' ' + m.codePointAt(0).toString(16)))`)
		for _, f := range found {
			t.Errorf("%s: %s", where, f)
		}
		tb.fits(where)
		tb.check(where)
	}
	for name, id := range all {
		for _, part := range []string{"why", "tasks", "result", "output", "logs", "history", "input"} {
			if part == "tasks" && name != "workflow" || strings.HasPrefix(name, "results") && part != "result" && part != "output" || name == "asked" && part != "why" && part != "input" {
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
	tb.see("https://evil.example/a/a/") // the last line
	tb.do("a line of them", chromedp.Navigate(s.url+"/ui/executions/"+all["output"]+"/logs?find="+url.QueryEscape("<svg onload=")))
	tb.see("<svg onload=window.pwned=1>")
	tb.as("dark", 360)
	batch := url.QueryEscape("l0=" + hostile[0])
	for _, path := range []string{"executions/" + all["output"] + "/logs?find=" + url.QueryEscape("<"), "executions/" + all["output"] + "/logs?regexp=true&find=" + url.QueryEscape(`[<>\"'].*`), "executions/" + all["output"] + "/logs?find=" + url.QueryEscape(hostile[0]),
		"compare?a=" + all["output"] + "&b=" + all["cases"], "compare?show=input&a=" + all["output"] + "&b=" + all["cases"], "compare?show=output&a=" + all["output"] + "&b=" + all["input"], "compare?show=logs&a=" + all["output"] + "&b=" + all["cases"],
		"compare?a=" + all["odd"] + "&b=" + all["cases"], "compare?show=output&a=" + all["odd"] + "&b=" + all["odd"], "executions/" + all["odd"] + "/constructor",
		"compare?a=" + all["cases"], "compare?a=" + url.QueryEscape(hostile[1]), "batches", "batches?of=" + batch, "batches?rows=label:l1&of=" + batch, "batches?cols=label:l2&against=" + batch + "&of=" + batch, "batches?of=" + url.QueryEscape(hostile[1]),
		"executions/" + all["workflow"] + "/tasks?at=5", "executions/" + all["cancelled"] + "/history?at=3",
		"executions", "executions?status=running", "executions?action=noop", "signals", fmt.Sprint("signals/", signal["signal"]), "questions", "definitions", "definitions/hostile", "definitions/hostile-1", "definitions/hostile?task=a", "new?action=hostile", "new?from=" + all["input"], "work",
		"executions?label=" + url.QueryEscape(`l0=<script>window.pwned=1</script>`), "executions/" + url.PathEscape(`<img src=x onerror=window.pwned=1>`), url.PathEscape(`<script>window.pwned=1</script>`)} {
		tb.do(path, chromedp.Navigate(s.url+"/ui/"+path))
		tb.until(path+" has loaded", `!!document.querySelector('h1') && !document.body.innerText.includes('Loading')`)
		look(path)
	}
}
