package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"
)

const manifestDir = "../../deploy/kubernetes"

// helmsOwn matches the lines of a manifest that mention Helm.
var helmsOwn = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n`)

// The manifests of deploy/kubernetes are the chart's output for deploy/kubernetes/values/plain.yaml, one file for each directory of
// templates.
func TestManifests(t *testing.T) {
	values, err := chartutil.ReadValuesFile(filepath.Join(manifestDir, "values", "plain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	texts, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]releaseutil.Manifest{}
	for name, text := range texts {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		part := filepath.Dir(name)
		for _, document := range releaseutil.SplitManifests(text) {
			some, err := decode(document)
			if err != nil || len(some) != 1 {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			parts[part] = append(parts[part], releaseutil.Manifest{Name: some[0].name(), Content: helmsOwn.ReplaceAllString(strings.TrimSpace(document)+"\n", "")})
		}
	}
	written, err := filepath.Glob(manifestDir + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for part, manifests := range parts {
		slices.SortFunc(manifests, func(a, b releaseutil.Manifest) int { return rank(a.Name) - rank(b.Name) })
		var out bytes.Buffer
		out.WriteString("# Written by scripts/manifests from deploy/helm/pawl and values/plain.yaml. docs/kubernetes.md explains it.\n")
		for _, m := range manifests { // also before the first: files are concatenated
			out.WriteString("---\n")
			out.WriteString(m.Content)
		}
		file := filepath.Join(manifestDir, part+".yaml")
		written = slices.DeleteFunc(written, func(w string) bool { return w == file })
		before, err := os.ReadFile(file)
		if err == nil && bytes.Equal(before, out.Bytes()) {
			continue
		}
		if !*update {
			t.Errorf("%s is not what the chart makes (%v): run scripts/manifests", file, err)
			continue
		}
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(written) > 0 {
		t.Errorf("%v: not from the chart", written)
	}
}

// rank is an order in which kubectl can apply objects, the same each time.
func rank(name string) int {
	kind, _, _ := strings.Cut(name, "/")
	return slices.Index(releaseutil.InstallOrder, kind)*1000 + len(name)
}
