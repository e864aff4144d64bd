package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A source file is named in the documents by the end of its path, as in `engine/commit.go`.
var namedFile = regexp.MustCompile("`([A-Za-z0-9_./-]+/[A-Za-z0-9_.-]+\\.(?:go|js|sql))`")

// The source files that the documents name exist. Decisions are left out: they tell of the tree as it was.
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
