package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	declared  = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w*)\(`)
	namedTest = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*`)
	namedPath = regexp.MustCompile("`((?:api|bench|client|cmd|deploy|docs|e2e|examples|handler|internal|pawltest|scripts|sdk|web)/[\\w./-]+)`")
	ranIn     = regexp.MustCompile(`go run \./([\w/]+)[^\n]*?\bin \[(\w+)/\]`)
)

// The documents name tests, files and programs. Each of them exists, so that a reader who looks for the test of a promise finds it.
// Decisions are left out, because they describe their date.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	tests := []string{"TestName"} // the placeholder of CONTRIBUTING.md
	var documents []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != ".." || d.Name() == "node_modules" || d.Name() == "decisions"):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") && strings.HasSuffix(path, ".go"):
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(text, -1) {
				tests = append(tests, string(m[1]))
			}
			return err
		case strings.HasSuffix(path, ".md") && d.Name() != "CHANGELOG.md":
			documents = append(documents, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join("..", path))
		return err == nil
	}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range namedTest.FindAllString(string(text), -1) {
			if !slices.Contains(tests, name) {
				t.Errorf("%s names %s, which is no test: name the one that shows it now", document, name)
			}
		}
		for _, m := range namedPath.FindAllSubmatch(text, -1) {
			if path := string(m[1]); !strings.Contains(path, "NNNN") && !exists(path) {
				t.Errorf("%s names %s, which does not exist", document, path)
			}
		}
		for _, m := range ranIn.FindAllSubmatch(text, -1) {
			if path := string(m[2]) + "/" + string(m[1]); !exists(path) {
				t.Errorf("%s runs %s, which does not exist", document, path)
			}
		}
	}
}
