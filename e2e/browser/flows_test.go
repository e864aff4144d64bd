package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/pawl-run/pawl/internal/programtest"
)

// press finds a button or link by its words and clicks it in the same step: a moment later it may be another element, or disabled.
func (tb *tab) press(words string) {
	tb.t.Helper()
	find := `[...document.querySelectorAll('button, a')].find((b) => b.innerText.trim() === ` + quote(words) + ` && !b.disabled && b.offsetParent !== null)`
	tb.until("there is a button "+words, `((b) => !!b && (b.click(), true))(`+find+`)`)
}

// A person runs a program, sees how it ended, and runs it again.
func TestRunAProgram(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/"))
	tb.see("Nothing has run yet")
	tb.press("New execution")
	tb.see("Program")
	eval[any](tb, `document.querySelector('#language').select()`)
	tb.do("fill in", chromedp.SendKeys("#language", "bash"), chromedp.SendKeys("#source", "read x; echo got $x"), chromedp.SendKeys("#labels", "team=docs"))
	tb.press("Add a case")
	tb.do("a case", chromedp.SendKeys("#in-0", "7"), chromedp.SendKeys("#out-0", "got 7"))
	tb.press("Run")
	tb.see("1 of 1 case passed")
	tb.see("team")
	tb.press("Run again")
	tb.see("Run it again?")
	tb.accessible("a dialog")
	tb.do("agree", click(`dialog[open] button[type=submit]`))
	tb.until("another execution is shown", `!document.querySelector('dialog[open]') && document.body.innerText.includes('1 of 1 case passed')`)
	tb.see("Retry of")
	eval[any](tb, `[...document.querySelectorAll('dl div')].find((d) => d.innerText.startsWith('Retry of')).querySelector('a').click()`)
	tb.see("Retries")
	eval[any](tb, `[...document.querySelectorAll('dl div')].find((d) => d.innerText.startsWith('Retries')).querySelector('a').click()`)
	tb.see("Retry of")
	tb.press("Run with changes")
	tb.until("the form has what was run", `document.querySelector('#source')?.value.includes('got $x') && document.querySelector('#in-0')?.value === '7' && document.querySelector('#labels').value === 'team=docs'`)
	eval[any](tb, `document.querySelector('#out-0').select()`)
	tb.do("expect something else", chromedp.SendKeys("#out-0", "got 8"))
	tb.press("Run")
	tb.see("0 of 1 case passed")
	tb.see("First difference in line 1") // without that the case is pressed
	if n := len(s.call(t, http.MethodGet, "/api/v1/executions", nil)["executions"].([]any)); n != 3 {
		t.Errorf("%d executions, want 3", n)
	}
}

// A refusal of the server is shown in the server's words, with the place and what to do.
func TestRefusal(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/new?as=action"))
	tb.do("fill in", chromedp.SendKeys("#action", "sleep"), chromedp.SendKeys("#input", `{"for": "soon"}`))
	tb.press("Run")
	tb.until("an alert", `!!document.querySelector('[role=alert]') && document.querySelector('[role=alert]').innerText.includes('soon')`)
}

// A workflow is started from the form of its schema, and a number reaches it with all its digits.
func TestRunAWorkflow(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "echo", "input": {"type": "object", "properties": {"n": {"type": "integer"}}}, "tasks": {"a": {"action": "noop", "with": {"n": "${{ input.n }}"}}}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/definitions/echo"))
	tb.press("Run")
	tb.do("fill in", chromedp.SendKeys("#field-0", "900719925474099312345"))
	tb.press("Run")
	tb.see("1 task")
	tb.press("Input")
	tb.see("900719925474099312345")
}

// A person writes definitions on the page, which checks them and names the line of each fault, registers them, and changes a registered
// one.
func TestRegister(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/definitions"))
	tb.press("Register …")
	tb.press("Begin with an example")
	tb.see("Nothing is wrong with workflow hello")
	tb.accessible("a document to register")
	write := func(from, to string) {
		t.Helper()
		eval[any](tb, `(() => { const d = document.querySelector('#document'); d.value = d.value.replace(`+quote(from)+`, `+quote(to)+`); d.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	}
	write("language: python", "language: 7")
	tb.see("1 fault")
	tb.accessible("a document with a fault")
	tb.press("Line 7")
	if got := eval[string](tb, `(() => { const d = document.activeElement; return d.value.slice(d.selectionStart, d.selectionEnd).trim(); })()`); got != "language: 7" {
		t.Errorf("line 7 is shown as %q", got)
	}
	if !eval[bool](tb, `[...document.querySelectorAll('button')].find((b) => b.innerText === 'Register').disabled`) {
		t.Error("a document with a fault can be registered")
	}
	write("language: 7", "language: bash")
	write("print(\"Hello, ${{ input.name }}\")", "echo hello")
	tb.press("Register")
	tb.see("Registered:")
	tb.press("hello")
	tb.see("1 task")
	tb.press("Change …")
	tb.see("Nothing is wrong with workflow hello")
	write("echo hello", "echo good-bye")
	tb.press("Register")
	tb.see("@2")
	// From a file, with an alias that is moved to it.
	file := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(file, []byte("name: one\naction: noop\n---\nname: hello\ntasks:\n  a: {action: one}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tb.do("choose a file", chromedp.SetUploadFiles("#document-file", []string{file}), chromedp.SendKeys("#alias", "next"))
	tb.see("Nothing is wrong with action one, workflow hello")
	tb.press("Register")
	tb.see("@3")
	targets := s.call(t, http.MethodGet, "/api/v1/definitions/hello/aliases", nil)["aliases"].([]any)
	if n := len(targets); n != 2 {
		t.Errorf("%d aliases of hello, want latest and next: %v", n, targets)
	}
}

// pawl apply accepts the downloaded file of a definition as the same version, for each example and for texts with quotes, tabs and control
// characters.
func TestDocumentIsTakenAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "odd", "tasks": {"a": {"action": "noop", "with": {"program": "import sys\n\n\tprint(\"6 * 7\")\n", "end": "x\n\n", "led": "  x\ny", "turned": "\u202e 'a' \"b\" \\",
		"tag": "\udb40\udc41", "bell": "\u0007", "line": "\u2028\u0085", "yes": "yes", "n": 12345678901234567890, "f": 1.50, "text": "1.50", "none": null, "": "", "list": [[1, []], {}, "- x", "# x", "a: b", "${{ workflow.id }}"]}}}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/definitions/odd"))
	file := filepath.Join(t.TempDir(), "odd.yaml")
	for _, as := range []string{"YAML", "JSON"} {
		tb.press(as)
		tb.until("the document is there", `document.querySelector('pre[aria-label=Document]')?.textContent.startsWith(`+map[string]string{"YAML": `'kind: workflow'`, "JSON": `'{'`}[as]+`)`)
		tb.accessible("the document of a definition as " + as)
		tb.fits("the document of a definition as " + as)
		tb.shot("document as " + as)
		// The page marks invisible characters; the file contains them as they are.
		eval[any](tb, `(() => { const made = URL.createObjectURL; URL.createObjectURL = (b) => { b.text().then((text) => { window.saved = text; }); URL.createObjectURL = made; return made(b); }; })()`)
		tb.press("Download")
		tb.until("it is saved", `window.saved !== undefined`)
		saved := eval[string](tb, `(() => { const text = window.saved; delete window.saved; return text; })()`)
		if err := os.WriteFile(file, []byte(saved), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), pawl, "apply", file)
		cmd.Env = append(os.Environ(), "PAWL_SERVER="+s.url, "PAWL_TOKEN=", "XDG_CONFIG_HOME="+programtest.ConfigHome(t))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("pawl apply of %s: %v\n%s\n%s", as, err, out, saved)
		}
		if v := s.call(t, http.MethodGet, "/api/v1/definitions/odd", nil)["version"].(float64); v != 1 {
			t.Fatalf("the document as %s is another: version %v\n%s", as, v, saved)
		}
	}
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, f := range files { // one after the other: two of them have a webhook "github"
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s.call(t, http.MethodPost, "/api/v1/definitions", string(text))
	}
	eval[any](tb, `import(new URL('../part/yaml.js', document.querySelector('script[src*="app/boot.js"]').src)).then((m) => { window.yaml = m.yaml; })`)
	all := s.call(t, http.MethodGet, "/api/v1/definitions?limit=1000", nil)["definitions"].([]any)
	if len(all) < len(files) {
		t.Errorf("%d definitions of %d examples", len(all), len(files))
	}
	for _, d := range all {
		name := d.(map[string]any)["name"].(string)
		var of struct{ Document json.RawMessage }
		if err := json.Unmarshal([]byte(s.text(t, http.MethodGet, "/api/v1/definitions/"+name, nil)), &of); err != nil {
			t.Fatal(err)
		}
		text := eval[string](tb, `window.yaml(`+quote(string(of.Document))+`)`)
		again := s.call(t, http.MethodPost, "/api/v1/definitions", text)["definitions"].([]any)[0].(map[string]any)
		if again["created"] == true || again["name"] != name {
			t.Errorf("%s is another: %v\n%s\n%s", name, again, of.Document, text)
		}
	}
}

// The cases of a program are loaded from files, each under its name.
func TestCaseFiles(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	dir := t.TempDir()
	var files []string
	for name, content := range map[string]string{"10.in": "ten", "10.out": "got ten", "9.in": "nine", "9.ans": "got eight", "free.in": "x"} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/new"))
	tb.see("Program")
	eval[any](tb, `document.querySelector('#language').select()`)
	tb.do("fill in", chromedp.SendKeys("#language", "bash"), chromedp.SendKeys("#source", "read x; echo got $x"), chromedp.SetUploadFiles("#case-files", files))
	tb.until("the cases are there in order", `[...document.querySelectorAll('fieldset.case legend')].map((l) => l.innerText.replace('Remove', '').trim()).join() === 'Case 9,Case 10,Case free'`)
	tb.do("one without an input", chromedp.SetUploadFiles("#case-files", []string{filepath.Join(dir, "9.ans")}))
	tb.see("9.in is missing")
	tb.press("Run")
	tb.see("2 of 3 cases passed")
	tb.press("Run with changes")
	tb.until("the form has the names", `document.querySelectorAll('fieldset.case legend')[2]?.innerText.startsWith('Case free') && document.querySelector('#out-0').value === 'got eight'`)
}

// A workflow that failed is rerun from the failed task, after its plan was shown. A task that would be reused can be chosen to run.
func TestRerun(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "release", "tasks": {"build": {"action": "noop"}, "publish": {"needs": ["build"], "action": "code", "with": {"language": "bash", "source": "exit 3"}}}}`)
	first := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "release"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+first))
	tb.press("Rerun …")
	tb.see("1 outcome is reused; 1 task runs.")
	tb.see("it failed")
	tb.accessible("the plan of a rerun")
	tb.do("choose a task", click(`dialog[open] input[aria-label="Run build in any case"]`))
	tb.see("No outcome is reused; 2 tasks run.")
	tb.see("it was named")
	tb.do("choose it no more", click(`dialog[open] input[aria-label="Run build in any case"]`))
	tb.see("1 outcome is reused; 1 task runs.")
	tb.press("Rerun")
	tb.until("the rerun is shown, and names the first one", `!document.querySelector('dialog[open]') && [...document.querySelectorAll('dl dt')].some((d) => d.innerText === 'Rerun of') && !!document.querySelector('dl a[href$="executions/`+first+`"]')`)
	again := s.call(t, http.MethodGet, "/api/v1/executions?rerun_of="+first, nil)["executions"].([]any)
	if len(again) != 1 {
		t.Errorf("%d reruns, want 1", len(again))
	}
	// One task alone: the tasks before it must be reusable, and the tasks after it are left out.
	tb.do("open the first one", chromedp.Navigate(s.url+"/ui/executions/"+first))
	tb.press("Rerun …")
	tb.see("1 outcome is reused; 1 task runs.")
	tb.do("alone", clickWords(`dialog[open] label`, "Run only"),
		click(`dialog[open] input[aria-label="Run build"]`))
	tb.see("left out")
	tb.see("the rerun is of build only")
	tb.accessible("the plan of a rerun of one task")
	tb.press("Rerun")
	tb.until("it says of what it is", `[...document.querySelectorAll('dl dt')].some((d) => d.innerText === 'Only')`)
}

// A rerun gets another input and an output set by hand: the form refuses invalid JSON where it is typed, and a number keeps all its digits.
func TestRerunWithWhatIsGiven(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "release", "tasks": {"build": {"action": "noop", "with": {"n": "${{ input.n }}"}}, "publish": {"needs": ["build"], "action": "code", "with": {"language": "bash", "source": "exit 3"}}}}`)
	first := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "release", "input": {"n": 9007199254740993}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+first))
	tb.press("Rerun …")
	tb.see("1 outcome is reused; 1 task runs.")
	tb.do("give nonsense", clickWords(`dialog[open] summary`, "Give an output"), chromedp.SendKeys(`dialog[open] #rerun-task`, "publish"), chromedp.SendKeys(`dialog[open] #rerun-output`, "{url"))
	tb.press("Plan with this output")
	tb.see("This is no JSON")
	tb.accessible("nonsense as an output")
	eval[any](tb, `document.querySelector("#rerun-output").select()`)
	tb.do("give an output", chromedp.SendKeys(`dialog[open] #rerun-output`, `{"id": 9007199254740995}`), chromedp.SendKeys(`dialog[open] #rerun-by`, "ada"))
	tb.press("Plan with this output")
	tb.see("1 outcome is reused, and nothing runs.")
	tb.accessible("the plan of a rerun with a given output")
	tb.shot("rerun-given")
	tb.do("give another input", clickWords(`dialog[open] summary`, "With another input"))
	tb.until("the old input is there, to the digit", `document.querySelector('dialog[open] #rerun-input').value.includes('9007199254740993')`)
	eval[any](tb, `document.querySelector("#rerun-input").select()`)
	tb.do("change it", chromedp.SendKeys(`dialog[open] #rerun-input`, `{"n": 9007199254740997}`))
	tb.press("Plan with this input")
	tb.see("No outcome is reused; 1 task runs.")
	tb.press("Rerun")
	tb.until("the rerun says who gave it an output", `!document.querySelector('dialog[open]') && document.body.innerText.includes('ada')`)
	again := s.call(t, http.MethodGet, "/api/v1/executions?rerun_of="+first, nil)["executions"].([]any)
	if len(again) != 1 {
		t.Fatalf("%d reruns, want 1", len(again))
	}
	id := again[0].(map[string]any)["id"].(string)
	if raw := s.text(t, http.MethodGet, "/api/v1/executions/"+id+"?wait=60s", nil); !strings.Contains(raw, "9007199254740997") {
		t.Errorf("the input is not what was typed: %s", raw)
	}
	if raw := s.text(t, http.MethodGet, "/api/v1/executions?workflow="+id+"&outputs=true", nil); !strings.Contains(raw, "9007199254740995") {
		t.Errorf("the output is not what was typed: %s", raw)
	}
}

// The changes between two versions are marked in one graph of both, by shape and word; a task leads to its own changes. Equal versions are
// reported as equal.
func TestChangesAsAGraph(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	const third = "name: twice\ndescription: The third version\ntasks:\n  fetch: {action: noop}\n  check: {needs: fetch, action: noop, with: {value: 2}}\n  sign: {needs: check, action: noop}\n  ship: {needs: [sign, fetch], action: noop}\n"
	for _, text := range []string{twice, twiceLater, third} {
		s.call(t, http.MethodPost, "/api/v1/definitions", text)
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/definitions/twice?version=2"))
	const changed = `[aria-label="What changed, as a graph"]`
	tb.until("the graph is there", `!!document.querySelector('`+changed+` .node')`)
	for task, look := range map[string][3]string{"pack": {"−", "removed", "dashed"}, "sign": {"+", "added", "solid"}, "check": {"≠", "changed", "double"}, "ship": {"≠", "changed", "double"}, "fetch": {"", "", "solid"}} {
		got := eval[[3]string](tb, `(() => { const n = document.querySelector('`+changed+` .node[data-task=`+task+`]'); return [n.querySelector('b')?.innerText || '', n.innerText.match(/(added|removed|changed) ·/)?.[1] || '', getComputedStyle(n).borderTopStyle]; })()`)
		if got != look {
			t.Errorf("%s is drawn with %q, want %q", task, got, look)
		}
	}
	if n := eval[int](tb, `document.querySelector('`+changed+` path.removed').getAttribute('d').split('M').length - 1`); n != 2 {
		t.Errorf("%d needs are drawn as removed, want 2", n)
	}
	tb.see("description")
	tb.do("follow the graph by keys", chromedp.Focus(changed+` .node[data-task=check]`))
	tb.key("along an edge that was removed, or added", kb.ArrowRight)
	tb.until("the focus is on the next task", `['pack', 'sign'].includes(document.activeElement?.getAttribute('data-task'))`)
	tb.do("ask for one task", click(changed+` .node[data-task=check]`))
	tb.see("The whole document")
	tb.until("its lines are there alone", `(() => { const d = document.querySelector('.diff').innerText; return d.includes('value') && !d.includes('description'); })()`)
	tb.accessible("what changed in a task")
	tb.press("The whole document")
	tb.until("all lines are there", `document.querySelector('.diff').innerText.includes('description')`)
	tb.do("look at what changed no task", chromedp.Navigate(s.url+"/ui/definitions/twice"))
	tb.see("No task was added, removed or changed.")
	tb.until("there is no second graph", `document.querySelectorAll('.graph').length === 1`)
	tb.do("compare with the first", chromedp.SetValue(`select[aria-label="Since version"]`, "1"))
	eval[any](tb, `document.querySelector('select[aria-label="Since version"]').dispatchEvent(new Event('change', {bubbles: true}))`)
	tb.until("the graph is there", `!!document.querySelector('`+changed+` .node.removed')`)
	tb.accessible("what changed since another version")
}

// The screen of a definition leads to the executions of the shown version, and of each other one, including those that are tasks of a
// workflow.
func TestRunsOfAVersion(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	ids := map[int]string{}
	for v := 1; v <= 2; v++ {
		s.call(t, http.MethodPost, "/api/v1/definitions", fmt.Sprintf(`{"name": "ship", "labels": {"v": "%d"}, "tasks": {"a": {"action": "noop"}}}`, v))
		s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "fleet", "labels": {"v": "`+fmt.Sprint(v)+`"}, "tasks": {"one": {"action": "ship"}}}`)
		ids[v] = s.submit(t, "/api/v1/executions?wait=60s", `{"action": "fleet"}`)
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	listed := func(v int) {
		tb.until(fmt.Sprintf("the run of version %d is there alone", v), fmt.Sprintf(`[...document.querySelectorAll('table.runs .open-row')].map((a) => a.innerText).join() === 'ship@%d'`, v))
		task := s.call(t, http.MethodGet, "/api/v1/executions?workflow="+ids[v], nil)["executions"].([]any)[0].(map[string]any)["id"].(string)
		if !eval[bool](tb, `!!document.querySelector('table.runs a[href$="`+task+`"]')`) {
			t.Errorf("the run of version %d is not that of the workflow", v)
		}
	}
	tb.do("open", chromedp.Navigate(s.url+"/ui/definitions/ship?version=1"))
	tb.press("Runs of this version")
	listed(1)
	tb.do("open the latest", chromedp.Navigate(s.url+"/ui/definitions/ship"))
	tb.press("Runs of this version")
	listed(2)
	tb.do("back", chromedp.Navigate(s.url+"/ui/definitions/ship"))
	tb.until("versions are listed", `!!document.querySelector('a[aria-label="Runs of version 1"]')`)
	tb.do("from the list of versions", click(`a[aria-label="Runs of version 1"]`))
	listed(1)
}

// An alias is set to the shown version, moved on, and moved back. An execution shows the alias under which it was requested.
func TestAliases(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	for _, v := range []string{"a", "b"} {
		s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "ship", "labels": {"v": "`+v+`"}, "tasks": {"a": {"action": "noop"}}}`)
	}
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/definitions/ship?version=1"))
	tb.see("None yet.")
	tb.press("New alias …")
	tb.do("name it badly", chromedp.SendKeys(`dialog[open] #alias`, "Stable"))
	tb.press("Move the alias")
	tb.see("take a name such as stable")
	tb.accessible("a refused alias")
	tb.do("name it", chromedp.SendKeys(`dialog[open] #alias`, strings.Repeat("\b", 6)+"stable"), chromedp.SendKeys(`dialog[open] #why-move`, "it works"))
	tb.press("Move the alias")
	stands := func(version int) { // after the answer to the order: the browser may drop a request of a page that is left
		t.Helper()
		tb.until(fmt.Sprint("the alias stands for version ", version), fmt.Sprintf(`!document.querySelector('dialog[open]') && document.querySelector('td.stands')?.innerText.startsWith('version %d')`, version))
	}
	stands(1)
	tb.see("it works")
	tb.do("look at version 2", chromedp.Navigate(s.url+"/ui/definitions/ship"))
	tb.press("Move to 2")
	tb.press("Move the alias")
	stands(2)
	id := s.submit(t, "/api/v1/executions?wait=60s", `{"action": "ship@stable"}`)
	tb.press("Back")
	tb.press("Move the alias")
	stands(1)
	tb.accessible("aliases")
	tb.do("see what was asked for by it", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.see("By alias")
	moves := s.call(t, http.MethodGet, "/api/v1/definitions/ship/aliases/stable", nil)["aliases"].([]any)
	if len(moves) != 3 {
		t.Errorf("%d moves, want 3", len(moves))
	}
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "form", "input": {"type": "object", "properties": {"old": {"type": "string", "title": "The old field"}}}, "tasks": {"a": {"action": "noop"}}}`)
	s.call(t, http.MethodPost, "/api/v1/definitions?alias=next", `{"name": "form", "input": {"type": "object", "properties": {"fresh": {"type": "string", "title": "The fresh field"}}}, "tasks": {"a": {"action": "noop"}}}`)
	tb.do("run what the name stands for", chromedp.Navigate(s.url+"/ui/new?action=form"))
	tb.see("The old field")
	tb.do("run what the alias stands for", chromedp.Navigate(s.url+"/ui/new?action=form@next"))
	tb.see("The fresh field")
	tb.do("go back to it", chromedp.Navigate(s.url+"/ui/definitions/ship"))
	tb.press("Remove")
	tb.see("What asks for it is refused from now on.")
	tb.press("Remove the alias")
	tb.see("None yet.")
}

// The page explains what an execution waits for, and cancels it after a question.
func TestCancel(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.see("What would unblock it")
	tb.press("Cancel")
	tb.do("give a reason", chromedp.SendKeys("#reason", "not needed"))
	tb.press("Leave it")
	tb.until("the dialog is closed", `!document.querySelector('dialog[open]')`)
	tb.press("Cancel")
	tb.press("Cancel the execution")
	tb.see("Run again")
	tb.see("Cancelled")
}

// A dialog that is closed and requested again at once opens and stays open, even when a busy browser reports the first close late. A key
// pressed in between reaches no field of it.
func TestDialogOpenedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.until("it can be cancelled", `!!document.querySelector('[aria-keyshortcuts=c]')`)
	eval[any](tb, `document.addEventListener('close', (e) => {
		if (e.isTrusted) { e.stopImmediatePropagation(); window.tell = () => e.target.dispatchEvent(new Event('close')); }
	}, true)`)
	const asked = `!!document.querySelector('dialog[open] #reason')`
	ask := func() {
		t.Helper()
		tb.key("ask to cancel it", "c")
		tb.until("it is asked", asked)
	}
	ask()
	for _, way := range []struct {
		name  string
		leave func()
	}{
		{"a button", func() { tb.press("Leave it") }},
		{"Escape", func() { tb.key("leave it", kb.Escape) }},
		{"a click outside", func() {
			eval[any](tb, `(() => { const d = document.querySelector('dialog[open]'); d.dispatchEvent(new PointerEvent('pointerdown')); d.click(); })()`)
		}},
	} {
		way.leave()
		tb.until("the dialog is closed by "+way.name, `!document.querySelector('dialog[open], dialog form') && !!window.tell`)
		ask()
		eval[any](tb, `window.tell(), delete window.tell`)
		eval[any](tb, `new Promise((drawn) => { requestAnimationFrame(() => setTimeout(drawn, 0)); })`)
		if !eval[bool](tb, asked) {
			t.Errorf("the dialog that was closed by %s, and opened again, is closed by what the browser told late", way.name)
		}
	}
	tb.press("Cancel the execution")
	tb.see("Run again")
}

// A program is killed after a question, and the page says why it ended.
func TestKill(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "interactive": true, "source": "echo ready; read x"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id))
	tb.see("ready")
	tb.press("Kill")
	tb.do("give a reason", chromedp.SendKeys("#reason", "too long\r"))
	tb.see("Run again")
	tb.until("its state is a word as others are", `document.querySelector('.head .status').innerText === 'Cancelled' && document.title.startsWith('code cancelled')`)
	tb.press("History")
	tb.see("too long")
	tb.do("the list", chromedp.Navigate(s.url+"/ui/executions"))
	tb.until("the list has the state once, and the reason", `document.querySelector('td.c-status').innerText.trim() === 'Cancelled' && document.querySelector('td.c-verdict').innerText.trim() === 'too long'`)
}

// The list grows at its top while it is open, keeps its rows still while the pointer is over it, and is filtered by the address.
func TestLiveList(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		s.submit(t, "/api/v1/executions?wait=30s", `{"action": "noop", "labels": {"n": "first"}}`)
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
		tb.see("first")
		s.submit(t, "/api/v1/executions?wait=30s", `{"action": "noop", "labels": {"n": "second"}}`)
		tb.see("second")
		eval[any](tb, `document.querySelector('.panel').dispatchEvent(new PointerEvent('pointerenter'))`)
		s.submit(t, "/api/v1/executions?wait=30s", `{"action": "noop", "labels": {"n": "third"}}`)
		tb.see("1 new")
		if strings.Contains(tb.text(), "third") {
			t.Error("a row came in under the pointer")
		}
		tb.do("show it", chromedp.KeyEvent("."))
		tb.see("third")
		tb.do("filter", click(`a.chip[href*="n%3Dsecond"]`))
		tb.until("one row is left", `document.querySelectorAll('tbody tr').length === 1 && location.search === '?label=n%3Dsecond'`)
		tb.do("load again", chromedp.Reload())
		tb.until("the filter is in the address", `document.querySelectorAll('tbody tr').length === 1`)
		tb.do("by keys", chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
		tb.see("Attempt")
	})
}

// The list follows the server's stream of changes. Behind a proxy that holds streams back, it asks the server now and then.
func TestLiveListBehindProxies(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("held=%t", held), func(t *testing.T) {
			var streams, looks atomic.Int64
			proxy := proxied(t, s, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				if r.URL.Path == "/api/v1/executions" && r.Header.Get("Accept") == "text/event-stream" {
					if streams.Add(1); held {
						<-r.Context().Done()
						return
					}
				} else if r.URL.Path == "/api/v1/executions" {
					looks.Add(1)
				}
				forward.ServeHTTP(w, r)
			})
			tb := open(t, strings.TrimPrefix(proxy, "http://"))
			tb.do("open", chromedp.Navigate(fmt.Sprintf("%s/ui/executions?label=held%%3D%t", proxy, held)))
			tb.see("Nothing matches")
			s.submit(t, "/api/v1/executions?wait=30s", fmt.Sprintf(`{"action": "noop", "labels": {"held": "%t"}}`, held))
			tb.see("1 row, and that is all")
			if looks.Load() < 2 || streams.Load() == 0 { // the second can be under way already when the first is seen
				t.Errorf("%d looks, %d streams", looks.Load(), streams.Load())
			}
		})
	}
}

// The output of a program is shown while the program runs, and following ends when the program ends.
func TestFollowLogs(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "interactive": true, "source": "seq 1 3000; while read x; do printf '\\033[31mgot\\033[0m %s\\n' \"$x\"; done"}`)
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/logs"))
		tb.see("3,000 lines, following")
		tb.see("3000")
		s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/stdin", "hello\n")
		tb.see("got hello")
		tb.until("the colour is a class", `[...document.querySelectorAll('.logrow .f1')].some((e) => e.textContent === 'got')`)
		tb.fits("3,000 lines")
		tb.until("few rows are in the document", `document.querySelectorAll('.logrow').length < 150`)
		s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/stdin?eof=true", "")
		tb.until("it has ended", `!document.body.innerText.includes('following')`)
		tb.do("search", chromedp.SendKeys(`input[name="find"]`, "299\r"))
		tb.see("13 lines with 299")
		tb.until("lines and their places are shown", `document.querySelectorAll('.hit').length === 13 && document.querySelector('.hit').innerText.includes('stdout 1,084 299')`)
		tb.accessible("lines found")
		eval[any](tb, `document.querySelector('input[name="find"]').value = '^.\\[31mgot'`)
		tb.do("as an expression", click(`input[name="regexp"]`), chromedp.SendKeys(`input[name="find"]`, "\r"))
		tb.see("1 line with ^.")
		tb.until("the match is shown without its colours", `document.querySelector('.hit').innerText.endsWith('got hello')`)
		tb.do("load again", chromedp.Reload())
		tb.see("1 line with ^.")
		tb.fits("lines found")
	})
}

// The page follows what an execution waits for to its end: from the workflow to its task, to the holder of the concurrency key that the
// task needs.
func TestTrail(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	holder := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}, "concurrency": {"key": "k", "limit": 1}}`)
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "deploy", "tasks": {"a": {"action": "noop", "concurrency": {"key": "k", "limit": 1}}}}`)
	id := s.submit(t, "/api/v1/executions", `{"action": "deploy"}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/why"))
	tb.until("the trail ends at the holder", `document.querySelectorAll('.trail li').length === 2 && document.querySelector('.trail li:last-child').innerText.includes(`+quote(holder)+`)`)
	tb.accessible("a trail")
	tb.do("go to the holder", click(`.trail li:last-child a`))
	tb.until("the holder is shown", `location.pathname.endsWith(`+quote(holder)+`)`)
}

// However many rows have been scrolled through, few are in the document.
func TestManyRows(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		s.call(t, http.MethodPost, "/api/v1/executions:batch", `{"executions": [`+strings.Repeat(`{"action": "noop", "labels": {"a": "b"}}, `, 399)+`{"action": "noop"}]}`)
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
		for _, rows := range []string{"1 … 50", "1 … 100", "51 … 150", "101 … 200"} {
			tb.see(rows)
			tb.fits(rows)
			tb.press("Older")
		}
		tb.see("151 … 250")
		tb.press("Newest")
		tb.see("1 … 100")
	})
}

// When the server is killed and restarted while the page follows a history, the page reconnects, and no event is missing or shown twice.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
		host := strings.TrimPrefix(s.url, "http://")
		tb := open(t, host)
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/history"))
		tb.see("following")
		before := eval[int](tb, `document.querySelectorAll('.event:not(.attempt)').length`)
		s.kill()
		tb.until("it says how old what it shows is", `/^Reconnecting, as of \d\d:\d\d:\d\d$/.test(document.querySelector('.light').innerText)`)
		again := serveAt(t, "", s.store, s.state, host)
		again.call(t, http.MethodPost, "/api/v1/executions/"+id+"/cancel?wait=30s", `{"reason": "enough"}`)
		tb.see("no gap, complete")
		tb.see("Live")
		seqs := eval[[]int](tb, `[...document.querySelectorAll('.event:not(.attempt) > :first-child')].map((e) => Number(e.textContent))`)
		for i, seq := range seqs {
			if seq != i+1 {
				t.Fatalf("the page shows events %v", seqs)
			}
		}
		if len(seqs) <= before {
			t.Errorf("%d events before, %d after", before, len(seqs))
		}
	})
}

// A hidden tab closes its stream, and resumes where it was when it is visible again.
func TestHiddenTab(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/history"))
	tb.see("following")
	tb.hide(true)
	tb.see("Paused")
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/cancel?wait=30s", `{}`)
	if strings.Contains(tb.text(), "complete") {
		t.Error("a hidden tab has asked")
	}
	tb.hide(false)
	tb.see("no gap, complete")
}

// Text typed into a filter stays while the list below it is redrawn.
func TestFiltersKeepWhatIsTyped(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	for _, c := range []struct{ path, field, change, body, shown string }{
		{"/ui/executions", "Action", "/api/v1/executions", `{"action": "noop", "labels": {"of": "later"}}`, "later"},
		{"/ui/signals", "trigger", "/api/v1/signals", `{"trigger": "alert.fired", "subject": "later"}`, "later"},
	} {
		field := `document.querySelector('input[aria-label=` + c.field + `]')`
		tb.do("open", chromedp.Navigate(s.url+c.path))
		tb.until("the filter is there", field+` !== null`)
		eval[any](tb, field+`.focus()`)
		tb.do("type", chromedp.KeyEvent("typed"))
		s.call(t, http.MethodPost, c.change, c.body)
		tb.see(c.shown)
		tb.do("type on", chromedp.KeyEvent(" on"))
		if got := eval[string](tb, field+`.value`); got != "typed on" {
			t.Errorf("%s: the field %s has %q: the redrawn list has taken what was typed", c.path, c.field, got)
		}
	}
}

// Text typed as soon as a filter field exists stays in it, however late the next frame comes.
func TestTypedAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	for selector, path := range map[string]string{"input[aria-label=Action]": "executions", "input[name=where]": "executions", "input[aria-label=trigger]": "signals", "#of": "batches"} {
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("type at once", command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `new MutationObserver((_, o) => {
			const e = document.querySelector(` + quote(selector) + `);
			if (!e) return;
			o.disconnect();
			e.value = 'a=b';
			e.dispatchEvent(new Event('input', {bubbles: true}));
			requestAnimationFrame(() => setTimeout(() => setTimeout(() => { window.framed = true; }, 0), 0));
		}).observe(document, {childList: true, subtree: true})`}))
		tb.do("open", chromedp.Navigate(s.url+"/ui/"+path))
		tb.until("a frame is over", `window.framed`)
		if got := tb.value(selector); got != "a=b" {
			t.Errorf("%s of %s has %q: what was typed before the first frame is gone", selector, path, got)
		}
	}
}

// Without a pointer: the first stop skips the navigation, a row is opened, its tabs are walked through, an order is given and withdrawn.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("sleep")
	focused := func(condition string) {
		t.Helper()
		tb.until("the focus is on "+condition, `(document.activeElement.innerText || '').trim() === `+quote(condition))
	}
	tb.do("tab", chromedp.KeyEvent("\t"))
	focused("Skip to the content")
	tb.do("skip", chromedp.KeyEvent("\r"))
	tb.until("the focus is in the content", `document.activeElement.id === 'main'`)
	tb.do("filter", chromedp.KeyEvent("/"))
	eval[any](tb, `document.activeElement.select()`) // the driver sends the character although the page handled the key
	tb.do("write the filter", chromedp.KeyEvent("sleep\r"))
	tb.until("the filter is in the address", `location.search === '?action=sleep' && document.querySelectorAll('tbody tr').length === 1`)
	eval[any](tb, `document.activeElement.blur()`)
	tb.do("open the row", chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	tb.see("Attempt")
	for range 40 { // to the button, wherever the navigation left the focus
		if eval[string](tb, `(document.activeElement.innerText || '').trim()`) == "Cancel" {
			break
		}
		tb.do("tab", chromedp.KeyEvent("\t"))
	}
	focused("Cancel")
	tb.do("ask", chromedp.KeyEvent("\r"))
	tb.until("the focus is in the dialog", `document.querySelector('dialog[open]')?.contains(document.activeElement)`)
	tb.do("leave", chromedp.KeyEvent("\x1b"))
	tb.until("the dialog is closed", `!document.querySelector('dialog[open]')`)
	focused("Cancel")
	tb.do("go to work", chromedp.KeyEvent("g"), chromedp.KeyEvent("w"))
	tb.see("Concurrency keys")
	tb.do("ask for the keys", chromedp.KeyEvent("?"))
	tb.see("Previous row")
	tb.accessible("the keys")
}

// The executions that the filters select are cancelled, and rerun, after a preview.
func TestBulk(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store string) {
		s := serveOn(t, "", store)
		for range 3 {
			s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}, "labels": {"team": "docs"}}`)
		}
		kept := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}}`)
		tb := open(t, strings.TrimPrefix(s.url, "http://"))
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions?label=team%3Ddocs"))
		tb.press("Cancel all …")
		tb.see("Cancel 3 executions?")
		tb.do("give a reason", chromedp.SendKeys("#bulk-reason", "not needed"))
		tb.press("Cancel 3 executions")
		tb.see("3 cancelled, or ordered to end")
		tb.press("Close")
		tb.until("the list shows them as cancelled", `document.querySelectorAll('table.runs tbody tr').length === 3 && [...document.querySelectorAll('table.runs .c-status')].slice(1).every((c) => /Cancelled/.test(c.textContent))`)
		tb.press("Run all again …")
		tb.see("Run again 3 executions?")
		tb.press("Run again 3 executions")
		tb.see("3 submitted again")
		tb.press("Close")
		tb.until("six rows", `document.querySelectorAll('table.runs tbody tr').length === 6`)
		if x := s.call(t, http.MethodGet, "/api/v1/executions/"+kept, nil); x["status"] != "running" {
			t.Errorf("what the filters do not select is %v", x["status"])
		}
		tb.press("Cancel all …")
		tb.see("Cancel 3 executions?")
		tb.accessible("the question about many")
	})
}

// A growing log stays at the line that a person reads, even when its oldest lines are dropped.
func TestReadingLogThatIsCut(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	id := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "interactive": true, "source": "while read n; do seq -f %0100g $n; done", "limits": {"output": "16MB"}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions/"+id+"/logs"))
	tb.see("Nothing written yet")
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/stdin", "1 39000\n")
	tb.see("39,000 lines, following")
	eval[any](tb, `document.querySelector('.logview').scrollTop = 30000 * 18`)
	const first = `(() => { const b = document.querySelector('.logview'); return Number([...b.querySelectorAll('.logrow')].find((r) => r.offsetTop >= b.scrollTop - 1)?.lastElementChild.textContent); })()`
	tb.until("a line is read", first+` === 30001`)
	s.call(t, http.MethodPost, "/api/v1/executions/"+id+"/stdin", "1 8000\n")
	tb.until("all of it has come, and the oldest lines are dropped", `(() => { const n = document.body.innerText.match(/([0-9,]+) earlier lines left out/); return n && Number(n[1].replace(/,/g, '')) + Number(document.querySelector('.logbar [role=status]').innerText.replace(/\D/g, '')) === 47000; })()`)
	tb.until("the same line is read", first+` === 30001`)
}
