package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The documents name a source file by the end of its path, as in `engine/commit.go`.
var namedFile = regexp.MustCompile("`([A-Za-z0-9_./-]+/[A-Za-z0-9_.-]+\\.(?:go|js|sql))`")

// The source files that the documents name exist. Decisions are left out, because they describe the tree on their date.
func TestDocumentsNameFiles(t *testing.T) {
	t.Parallel()
	var files []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return fs.SkipDir
		case !entry.IsDir():
			files = append(files, "/"+filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	named := 0
	for _, document := range append(documents, "../README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedFile.FindAllStringSubmatch(string(text), -1) {
			named++
			if !hasSuffix(files, "/"+m[1]) {
				t.Errorf("%s names %s, which is not there", document, m[1])
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d names of files were found", named)
	}
}

func hasSuffix(files []string, end string) bool {
	for _, f := range files {
		if strings.HasSuffix(f, end) {
			return true
		}
	}
	return false
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	linkTo    = regexp.MustCompile(`\]\(([^)\s#:]*)(?:#([^)\s]*))?\)`) // without a scheme
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that a page makes from a document's headings: lower case, with dashes for spaces, without punctuation.
func anchors(document string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(document, ""), -1) {
		all[strings.ReplaceAll(strings.ToLower(noAnchor.ReplaceAllString(m[1], "")), " ", "-")] = true
	}
	return all
}

// The documents link to files and headings that exist.
func TestDocumentsLinkToHeadings(t *testing.T) {
	t.Parallel()
	var documents []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d documents, %v", pattern, len(found), err)
		}
		documents = append(documents, found...)
	}
	links := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linkTo.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
			links++
			to := document
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(document), m[1])
			}
			target, err := os.ReadFile(to)
			if info, missing := os.Stat(to); missing != nil || err != nil && !info.IsDir() {
				t.Errorf("%s links to %s, which is not there", document, m[1])
				continue
			}
			if m[2] != "" && !anchors(string(target))[m[2]] {
				t.Errorf("%s links to %s#%s: there is no such heading", document, m[1], m[2])
			}
		}
	}
	if links < 200 {
		t.Errorf("only %d links were found", links)
	}
}
