package web

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// banned are patterns that must not occur in a source of the page, because they turn text into markup or code, or contact another host.
var banned = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(?i)\b(inner|outer)HTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|createContextualFragment|DOMParser|setHTML`), "a text would become markup: use a template, whose values are text nodes"},
	{regexp.MustCompile(`\beval\s*\(|\bnew Function\b|\bFunction\s*\(|set(Timeout|Interval)\(\s*['"\x60]|javascript:`), "a text would become code"},
	{regexp.MustCompile(`\bon[a-z]+\s*=\s*["']`), "a handler in a string: the policy of the page refuses it; give a function"},
	{regexp.MustCompile(`\bstyle\s*=\s*["']|\bcssText\b|setAttribute\(\s*['"]style`), "a style in a string: the policy of the page refuses it; use a class, or an object, which goes through the CSSOM"},
	{regexp.MustCompile(`\bnew (Shared)?Worker\b|importScripts|\bimport\s*\(`), "it would need a URL that the policy of the page does not trust"},
	{regexp.MustCompile(`\blocalStorage\.setItem\(\s*tokenKey|document\.cookie`), "a token belongs into sessionStorage at most"},
}

// foreign matches addresses with a scheme; namespaces of XML are names and not addresses.
var foreign = regexp.MustCompile(`(?i)(?:https?|wss?|ftp):(?://|\\/\\/)[^\s'"\x60]+|url\(\s*['"]?//`)

var namespace = "http://www.w3.org/2000/svg"

// ownImport matches how a comment names a type of another file, and how a screen is loaded: by a constant name.
var ownImport = regexp.MustCompile(`import\('\.\.?/[./a-z]+'\)\.([A-Z]|then\()`)

// sources yields the page's own files.
func sources(t *testing.T, use func(name, text string)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "vendor" || name == "test" || name == "node_modules") {
			return filepath.SkipDir
		}
		switch filepath.Ext(name) {
		case ".js", ".css", ".html", ".svg":
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			n++
			use(filepath.ToSlash(name), string(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Fatalf("the test looked at %d files only", n)
	}
}

func TestSourcesMakeNothingOfText(t *testing.T) {
	t.Parallel()
	sources(t, func(name, text string) {
		for i, line := range strings.Split(text, "\n") {
			line = ownImport.ReplaceAllString(line, "")
			for _, b := range banned {
				if m := b.pattern.FindString(line); m != "" {
					t.Errorf("web/%s:%d: %q: %s", name, i+1, m, b.why)
				}
			}
			for _, m := range foreign.FindAllString(line, -1) {
				if !strings.HasPrefix(m, namespace) {
					t.Errorf("web/%s:%d: %q: the page asks no other host", name, i+1, m)
				}
			}
		}
	})
}

// asks matches the browser's functions that make requests.
var asks = regexp.MustCompile(`\bfetch\s*\(|\b(XMLHttpRequest|EventSource|WebSocket|sendBeacon)\b`)

// A request goes through the one function that ends it when it stays silent.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	sources(t, func(name, text string) {
		var found []string
		for line := range strings.Lines(text) {
			if code := strings.TrimSpace(line); !strings.HasPrefix(code, "//") && !strings.HasPrefix(code, "*") && !strings.HasPrefix(code, "/*") {
				found = append(found, asks.FindAllString(code, -1)...)
			}
		}
		if name == "app/api.js" && len(found) != 1 || name != "app/api.js" && len(found) > 0 {
			t.Errorf("web/%s asks with %q: use request of app/api.js", name, found)
		}
	})
}

func TestBanned(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`x.innerHTML = y`, `eval (s)`, "html`<a onclick=\"go()\">`", "html`<p style=\"color: red\">`", `setTimeout("go()", 1)`, `new Worker(u)`, `await import(name)`, `<div dangerouslySetInnerHTML=`,
	} {
		found := false
		for _, b := range banned {
			found = found || b.pattern.MatchString(line)
		}
		if !found {
			t.Errorf("nothing is said about %s", line)
		}
	}
	if foreign.FindString(`fetch('https://example.org/x')`) == "" || foreign.FindString(`fetch("api/v1")`) != "" {
		t.Error("addresses are not told apart")
	}
}

// tags are the elements that templates may use: no script, no frame, no form that the browser sends.
var tags = map[string]bool{}

func init() {
	for tag := range strings.FieldsSeq(`a b button canvas circle code datalist dd details dialog div dl dt fieldset footer form h1 h2 h3 header i img input kbd label legend li main nav ol
		option p path pre rect section select span strong summary svg table tbody td textarea th thead time tr ul col colgroup`) {
		tags[tag] = true
	}
}

var tag = regexp.MustCompile(`</?([a-zA-Z][a-zA-Z0-9-]*)[\s/>]`)

// widest is the most columns of a line with an element of a template: a change of one of ten elements in a line is hard to review.
const widest = 140

// Templates use only known elements: a mistyped one is found by this test and not on the screen.
func TestTemplatesNameKnownElements(t *testing.T) {
	t.Parallel()
	sources(t, func(name, text string) {
		if !strings.HasSuffix(name, ".js") {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if at := strings.TrimSpace(line); strings.HasPrefix(at, "*") || strings.HasPrefix(at, "//") || strings.HasPrefix(at, "/**") {
				continue
			}
			elements := tag.FindAllStringSubmatch(line, -1)
			if n := utf8.RuneCountInString(line); n > widest && len(elements) > 0 && !strings.Contains(line, "@type") {
				t.Errorf("web/%s:%d: %d columns, of %d at most: one element a line", name, i+1, n, widest)
			}
			for _, m := range elements {
				if !tags[m[1]] && !strings.Contains(line, "@type") {
					t.Errorf("web/%s:%d: <%s> is not among the elements that templates use", name, i+1, m[1])
				}
			}
		}
	})
}
