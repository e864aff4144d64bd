package kubernetes

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The worker's role has exactly the verbs that this package's requests need.
func TestRights(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		inside := map[ast.Node]bool{} // calls within a chain whose end has been visited
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || inside[call] {
				return true
			}
			calls := chainOf(call, inside)
			verb, resource := verbOf(calls), argument(calls["Resource"])
			switch {
			case verb == "":
			case argument(calls["SubResource"]) == "exec":
				// A stream is opened with GET, for which a cluster before 1.35 requires the verb get, and later ones create.
				needed[resource+"/exec get"], needed[resource+"/exec create"] = true, true
			default:
				needed[resource+" "+verb] = true
			}
			return true
		})
	}
	granted := map[string]bool{}
	text, err := os.ReadFile("../../../deploy/kubernetes/runs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for documents := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var one struct {
			Kind  string `yaml:"kind"`
			Rules []struct {
				APIGroups []string `yaml:"apiGroups"`
				Resources []string `yaml:"resources"`
				Verbs     []string `yaml:"verbs"`
			} `yaml:"rules"`
		}
		if err := documents.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, rule := range one.Rules {
			if !slices.Equal(rule.APIGroups, []string{""}) {
				t.Errorf("rights in groups %q", rule.APIGroups)
			}
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[resource+" "+verb] = true
				}
			}
		}
	}
	want, got := slices.Sorted(maps.Keys(needed)), slices.Sorted(maps.Keys(granted))
	if len(want) < 7 || !slices.Equal(want, got) {
		t.Errorf("the code needs\n%q\nand the role of deploy/kubernetes/runs.yaml, which is the chart's, grants\n%q", want, got)
	}
}

// chainOf is a chain of calls such as c.rest.Get().Resource("pods").Name(name), by method name.
func chainOf(call *ast.CallExpr, inside map[ast.Node]bool) map[string]*ast.CallExpr {
	calls := map[string]*ast.CallExpr{}
	for {
		inside[call] = true
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		calls[selector.Sel.Name] = call
		if call, ok = selector.X.(*ast.CallExpr); !ok {
			if from, ok := selector.X.(*ast.SelectorExpr); !ok || from.Sel.Name != "rest" {
				return nil // not a request of the client
			}
			return calls
		}
	}
}

// verbOf is the cluster's verb for a request; empty: it is not a request.
func verbOf(calls map[string]*ast.CallExpr) string {
	has := func(name string) bool { return calls[name] != nil }
	switch {
	case has("Watch"):
		return "watch"
	case has("Get") && has("Name"):
		return "get"
	case has("Get"):
		return "list"
	case has("Post"):
		return "create"
	case has("Put"):
		return "update"
	case has("Patch"):
		return "patch"
	case has("Delete") && has("Name"):
		return "delete"
	case has("Delete"):
		return "deletecollection"
	}
	return ""
}

// argument is the text that a call of a chain was given.
func argument(call *ast.CallExpr) string {
	if call == nil || len(call.Args) != 1 {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}
