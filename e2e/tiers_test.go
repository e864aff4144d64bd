package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// scripts/later.txt names the tests that make test leaves out and make test-all runs. go test takes one pattern for all packages, so a name
// in the list must not also be a test of another package, which make test would then leave out as well.
func TestLaterTestsExist(t *testing.T) {
	t.Parallel()
	packages := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
		if strings.HasPrefix(dir, "bench") || strings.HasPrefix(dir, "e2e/browser") || strings.HasPrefix(dir, "e2e/chart") {
			return err // modules of their own, which have their own lists in scripts/tests
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			if name := string(m[1]); name != "TestMain" {
				packages[name] = append(packages[name], dir)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../scripts/later.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) < 4 {
			t.Errorf("%q lacks a slice or a reason", line)
			continue
		}
		if fields[1] == "*" {
			continue
		}
		for _, pattern := range strings.Split(fields[1], "|") {
			matches, err := regexp.Compile("^(?:" + pattern + ")$")
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			found := false
			for name, in := range packages {
				if !matches.MatchString(name) {
					continue
				}
				for _, p := range in {
					if p == fields[0] {
						found = true
					} else {
						t.Errorf("%s is also a test of %s: give one of them another name", name, p)
					}
				}
			}
			if !found {
				t.Errorf("%s has no test %s", fields[0], pattern)
			}
		}
	}
}
