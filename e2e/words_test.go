package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Habits of writing that make a stranger read a sentence twice, and the habit that helps, counted in 10,000 words.
var (
	// A clause in the place of a noun: "what is due", "whoever holds it". The noun is shorter: "due work", "the holder".
	freeRelative = regexp.MustCompile(`(?i)\b(?:(?:what|whatever) (?:is|are|was|were|has|have|had|follows|comes|came|runs|ran|waits|stands|goes|` +
		`began|begins|ended|ends|remains|lies|belongs|fails|failed)|whoever|nobody|somebody|whom)\b`)
	// Phrases that a colleague would not say: "the server goes on" for continues, "at once" for immediately or in parallel.
	unspoken = regexp.MustCompile(`(?i)\b(?:beside|go(?:es)? on|at once|by (?:itself|themselves)|none of (?:it|them)|is said|of (?:its|their) own|` +
		`at the most|says? otherwise)\b`)
	example = regexp.MustCompile(`(?i)\b(?:for example|e\.g\.|such as)\b`)
	word    = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)

	fenced = regexp.MustCompile("(?s)<!--.*?-->|```.*?```|`[^`\n]*`")
	docTag = regexp.MustCompile(`doc:"([^"]*)"`)
	quoted = regexp.MustCompile("(?s)(?:Short|Long): +(?:\"([^\"]*)\"|`([^`]*)`)|Var[A-Z]*\\(.*, \"([^\"]* [^\"]*)\"\\)")
)

// proses returns the prose of the files: of documents without code, of Go files the text that expr finds.
func proses(t *testing.T, expr *regexp.Regexp, patterns ...string) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if expr == nil {
				b.WriteString(fenced.ReplaceAllString(string(text), "x") + "\n")
				continue
			}
			for _, m := range expr.FindAllStringSubmatch(string(text), -1) {
				b.WriteString(strings.Join(m[1:], " ") + "\n")
			}
		}
	}
	return b.String()
}

// Texts that strangers read use nouns for components, and give examples. A text over its bar is rewritten. Decisions keep the words of
// their date; their bars are a little above their values of 2026-11-28 (39.7 and 60.7), so that new ones are written as the other documents
// are.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		text      string
		relatives float64 // at most, in 10,000 words
		unspoken  float64 // at most
		examples  float64 // at least
	}{
		{"the API's fields", proses(t, docTag, "../api/*.go"), 5, 6, 5},
		{"the commands' help", proses(t, quoted, "../internal/cli/*.go", "../internal/cli/*/*.go"), 5, 5, 5},
		{"start.md", proses(t, nil, "../docs/start.md"), 5, 5, 5},
		{"README.md", proses(t, nil, "../README.md"), 5, 5, 0},
		{"all documents", proses(t, nil, "../docs/*.md"), 5, 5, 5},
		{"decisions", proses(t, nil, "../docs/decisions/*.md"), 42, 62, 0},
	} {
		words := float64(len(word.FindAllString(c.text, -1)))
		found := freeRelative.FindAllStringIndex(c.text, -1)
		said := unspoken.FindAllStringIndex(c.text, -1)
		relatives, examples := float64(len(found))/words*1e4, float64(len(example.FindAllString(c.text, -1)))/words*1e4
		unsaid := float64(len(said)) / words * 1e4
		t.Logf("%s: %.0f words, free relatives %.1f, unspoken %.1f, examples %.1f", c.name, words, relatives, unsaid, examples)
		if relatives > c.relatives {
			at := found[len(found)-1]
			t.Errorf("%s: %.1f clauses such as %q stand for nouns in 10,000 words; at most %.0f may: name the thing instead",
				c.name, relatives, c.text[max(0, at[0]-30):min(len(c.text), at[1]+30)], c.relatives)
		}
		if unsaid > c.unspoken {
			at := said[len(said)-1]
			t.Errorf("%s: %.1f phrases such as %q in 10,000 words are not spoken English; at most %.0f may be",
				c.name, unsaid, c.text[max(0, at[0]-30):min(len(c.text), at[1]+30)], c.unspoken)
		}
		if examples < c.examples {
			t.Errorf("%s: %.1f examples in 10,000 words; at least %.0f are wanted", c.name, examples, c.examples)
		}
	}
}

// cellWords is the length from which a table's cell is hard to read: 22 cells had up to 188 words, and are sections now.
const cellWords = 60

// A cell of a table has few words; a longer text becomes a section, which the cell links to.
func TestTableCellsAreShort(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	cells := 0
	for _, document := range append(documents, "../README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		inCode := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				inCode = !inCode
			}
			if inCode || !strings.HasPrefix(line, "|") {
				continue
			}
			for _, cell := range strings.Split(strings.ReplaceAll(line, `\|`, "x"), "|") {
				cells++
				if n := len(strings.Fields(cell)); n > cellWords {
					t.Errorf("%s:%d: a cell of %d words, at most %d: make it a section and link to it: %.60s …", document, i+1, n, cellWords, cell)
				}
			}
		}
	}
	if cells < 2000 {
		t.Errorf("only %d cells were found", cells)
	}
}
