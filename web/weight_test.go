package web

import (
	"bytes"
	"compress/gzip"
	"os"
	"path"
	"regexp"
	"testing"
)

var imported = regexp.MustCompile(`(?m)^import .*from '(\.\.?/[a-z./]+)';$`)

// needs adds a module and everything that it imports, directly or indirectly, to known. Modules imported by a call are loaded when they are
// first shown.
func needs(t *testing.T, name string, known map[string]bool) {
	t.Helper()
	if known[name] {
		return
	}
	known[name] = true
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range imported.FindAllSubmatch(text, -1) {
		needs(t, path.Join(path.Dir(name), string(m[1])), known)
	}
}

// A screen that is opened after the list loads no more modules than its first view needs. The browser's tests count the transferred bytes.
func TestWeightOfScreens(t *testing.T) {
	t.Parallel()
	first := map[string]bool{}
	needs(t, "app/boot.js", first)
	if len(first) < 10 {
		t.Fatalf("the first load is %d modules: its imports are not found", len(first))
	}
	for _, c := range []struct {
		screen  string
		modules []string
		most    int // bytes, compressed
	}{
		{"a result", []string{"screen/execution.js", "screen/result.js"}, 18_000},
		{"the batches", []string{"screen/batches.js"}, 3_000},
		{"a batch", []string{"screen/batches.js", "screen/batch.js"}, 15_000},
		{"the definitions", []string{"screen/definitions.js"}, 1_500},
		{"a comparison", []string{"screen/compare.js"}, 14_000},
		{"the work", []string{"screen/work.js"}, 7_500},
		{"a line of the work", []string{"screen/work.js", "screen/line.js"}, 13_500},
		{"a definition", []string{"screen/definition.js", "screen/document.js"}, 17_500},
		{"new", []string{"screen/new.js"}, 14_000},
		{"more settings of a new one", []string{"screen/settings.js"}, 3_500},
		{"the tasks of a workflow", []string{"screen/execution.js", "screen/tasks.js", "part/foldedgraph.js"}, 23_000},
		{"the grid of items", []string{"screen/itemgrid.js"}, 6_500},
		{"a history", []string{"screen/history.js"}, 6_500},
		{"both timelines of a workflow", []string{"screen/bytask.js", "screen/byworker.js"}, 11_500},
	} {
		all := map[string]bool{}
		for _, m := range c.modules {
			needs(t, m, all)
		}
		sum := 0
		for m := range all {
			if first[m] {
				continue
			}
			text, err := os.ReadFile(m)
			if err != nil {
				t.Fatal(err)
			}
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write(text); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			sum += packed.Len()
		}
		t.Logf("%s: %d bytes of modules, at most %d", c.screen, sum, c.most)
		if sum > c.most {
			t.Errorf("%s: %d bytes of modules, at most %d", c.screen, sum, c.most)
		}
	}
}
