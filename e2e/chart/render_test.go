// Package chart tests deploy/helm/pawl and what is generated from it: the chart's output for six sets of values, that it refuses others
// with the reason, and that it works on a real cluster.
package chart

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

const chartDir = "../../deploy/helm/pawl"

var update = flag.Bool("update", false, "write what is generated from the chart: deploy/kubernetes/*.yaml and the table of docs/kubernetes.md")

var theChart = sync.OnceValues(func() (*helmchart.Chart, error) { return loader.Load(chartDir) })

// render is what helm template makes of the chart, by the path of the template.
func render(values map[string]any) (map[string]string, error) {
	c, err := theChart()
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "pawl", Namespace: "pawl", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	made, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for name, text := range made {
		if strings.TrimSpace(text) != "" {
			texts[strings.TrimPrefix(name, "pawl/templates/")] = text
		}
	}
	return texts, nil
}

// object is a rendered object.
type object map[string]any

// at is the value at a path of names and indexes in an object; nil: none.
func (o object) at(names ...any) any {
	var here any = map[string]any(o)
	for _, name := range names {
		switch k := name.(type) {
		case string:
			m, _ := here.(map[string]any)
			here = m[k]
		case int:
			l, _ := here.([]any)
			if k >= len(l) {
				return nil
			}
			here = l[k]
		}
	}
	return here
}

func (o object) kind() string { s, _ := o["kind"].(string); return s }

func (o object) name() string { return fmt.Sprintf("%v/%v", o["kind"], o.at("metadata", "name")) }

// pod is the pod template of a Deployment.
func (o object) pod() object {
	m, _ := o.at("spec", "template", "spec").(map[string]any)
	return m
}

// container is the only container of a Deployment.
func (o object) container() object {
	m, _ := o.pod().at("containers", 0).(map[string]any)
	return m
}

func decode(text string) ([]object, error) {
	var all []object
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one map[string]any
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if one != nil {
			all = append(all, one)
		}
	}
}

// sets are the sets of values, by name.
func sets(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) != 6 {
		t.Fatalf("%v, %v: want six sets of values", files, err)
	}
	all := make(map[string]map[string]any)
	for _, f := range files {
		values, err := chartutil.ReadValuesFile(f)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".yaml")] = values
	}
	return all
}

// objects renders a set of values.
func objects(t *testing.T, values map[string]any) []object {
	t.Helper()
	texts, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		some, err := decode(texts[name])
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, texts[name])
		}
		all = append(all, some...)
	}
	return all
}

// each runs a test on every set of values.
func each(t *testing.T, test func(t *testing.T, name string, all []object)) {
	t.Helper()
	for name, values := range sets(t) {
		t.Run(name, func(t *testing.T) { test(t, name, objects(t, values)) })
	}
}

func ofKind(all []object, kind string) []object {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.kind() != kind })
}

func sameYAML(a, b any) bool {
	x, err := yaml.Marshal(a)
	y, fault := yaml.Marshal(b)
	return err == nil && fault == nil && bytes.Equal(x, y)
}

func readYAML(t *testing.T, file string, into any) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return text
}
