package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// linked matches a variable of this module that the linker is told to set, as in -X github.com/pawl-run/pawl/internal/cli/app.release=v1.
var linked = regexp.MustCompile(`-X[ =]["']?` + regexp.QuoteMeta(module) + `([\w./-]+)\.(\w+)=`)

// The linker ignores a -X whose variable does not exist, and the binary then reports the wrong version.
func TestLinkedVariablesExist(t *testing.T) {
	t.Parallel()
	builds := []string{"../Makefile"}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name, dir := entry.Name(), filepath.Base(filepath.Dir(path))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "node_modules" || name == ".git"):
			return fs.SkipDir
		case !entry.IsDir() && (strings.HasPrefix(name, "Dockerfile") || dir == "scripts" || dir == ".ci"):
			builds = append(builds, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, build := range builds {
		text, err := os.ReadFile(build)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
			found++
			if !settable(t, "../"+m[1], m[2]) {
				t.Errorf("%s sets %s.%s with -X: package %s has no variable %s that is a string without a value", build, m[1], m[2], m[1], m[2])
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d variables that the linker sets were found in %d files", found, len(builds))
	}
}

// settable reports whether a package has a variable that the linker can set: a string without an initializer.
func settable(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR || strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, spec := range vars.Specs {
				v := spec.(*ast.ValueSpec)
				typ, ok := v.Type.(*ast.Ident)
				if ok && typ.Name == "string" && len(v.Values) == 0 && len(v.Names) == 1 && v.Names[0].Name == name {
					return true
				}
			}
		}
	}
	return false
}
