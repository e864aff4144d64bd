package sandbox

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:generate go test . -run TestSyscallTables -write-tables

var writeTables = flag.Bool("write-tables", false, "write the tables of system calls anew, from golang.org/x/sys/unix")

// The tables contain every system call that golang.org/x/sys/unix defines: for a missing one the filter would behave as if the kernel did
// not have it. After an update of that module: go generate ./internal/runtime/sandbox
func TestSyscallTables(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatalf("find the source of golang.org/x/sys: %v", err)
	}
	if strings.TrimSpace(string(dir)) == "" && os.Geteuid() != 0 { // another user has built the test
		t.Skip("NOT TESTED: this user's module cache has no golang.org/x/sys")
	}
	amd64, arm64 := syscallNames(t, string(dir), "amd64"), syscallNames(t, string(dir), "arm64")
	both := slices.DeleteFunc(slices.Clone(amd64), func(name string) bool { return !slices.Contains(arm64, name) })
	only := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(both, name) })
	}
	for file, want := range map[string]string{
		"syscalls_linux.go":       fmt.Sprintf(sharedTable, rows(both)),
		"syscalls_linux_amd64.go": fmt.Sprintf(archTable, "X86_64", rows(only(amd64))),
		"syscalls_linux_arm64.go": fmt.Sprintf(archTable, "AARCH64", rows(only(arm64))),
	} {
		want, err := format.Source([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if *writeTables {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the table of golang.org/x/sys/unix (%v): run go generate ./internal/runtime/sandbox", file, err)
		}
	}
}

const sharedTable = `// Code generated from golang.org/x/sys/unix by go generate. DO NOT EDIT.

//go:build amd64 || arm64

package sandbox

import (
	"maps"

	"golang.org/x/sys/unix"
)

// syscallNumbers maps the names of system calls to their numbers on this architecture.
func syscallNumbers() map[string]uint32 {
	numbers := map[string]uint32{
%s}
	maps.Copy(numbers, archSyscalls)
	return numbers
}
`

const archTable = `// Code generated from golang.org/x/sys/unix by go generate. DO NOT EDIT.

package sandbox

import "golang.org/x/sys/unix"

// nativeArch is the audit architecture of system calls that this binary makes.
const nativeArch = unix.AUDIT_ARCH_%s

// archSyscalls are the system calls that the other architecture does not have.
var archSyscalls = map[string]uint32{
%s}
`

// syscallNames are the names of one architecture, without the prefix SYS_.
func syscallNames(t *testing.T, dir, arch string) (names []string) {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(dir), "unix", "zsysnum_linux_"+arch+".go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(source, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if name, ok := strings.CutPrefix(v.Names[0].Name, "SYS_"); ok {
				names = append(names, name)
			}
		}
		return true
	})
	if len(names) < 300 {
		t.Fatalf("%d system calls on %s", len(names), arch)
	}
	return names
}

func rows(names []string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%q: unix.SYS_%s,\n", strings.ToLower(name), name)
	}
	return b.String()
}
