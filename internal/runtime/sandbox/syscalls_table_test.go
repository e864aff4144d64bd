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
	"strings"
	"testing"
)

//go:generate go test . -run TestSyscallTables -write-tables

var writeTables = flag.Bool("write-tables", false, "write the tables of system calls anew, from golang.org/x/sys/unix")

// The tables name every system call that golang.org/x/sys/unix knows: one that is missing would be answered as if the kernel did not
// know it. After an update of that module: go generate ./internal/runtime/sandbox
func TestSyscallTables(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatalf("find the source of golang.org/x/sys: %v", err)
	}
	for arch, audit := range map[string]string{"amd64": "X86_64", "arm64": "AARCH64"} {
		source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		want, file := syscallTable(t, source, audit), "syscalls_linux_"+arch+".go"
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

// syscallTable writes the table of one architecture.
func syscallTable(t *testing.T, source *ast.File, audit string) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, `// Code generated from golang.org/x/sys/unix by go generate. DO NOT EDIT.

package sandbox

import "golang.org/x/sys/unix"

// nativeArch is the audit architecture of system calls that this binary makes.
const nativeArch = unix.AUDIT_ARCH_%s

// syscallNumbers maps the names of system calls to their numbers on this architecture.
func syscallNumbers() map[string]uint32 {
	return map[string]uint32{
`, audit)
	calls := 0
	ast.Inspect(source, func(n ast.Node) bool {
		if v, is := n.(*ast.ValueSpec); is {
			if name, is := strings.CutPrefix(v.Names[0].Name, "SYS_"); is {
				calls++
				fmt.Fprintf(&b, "%q: unix.SYS_%s,\n", strings.ToLower(name), name)
			}
		}
		return true
	})
	b.WriteString("}\n}\n")
	text, err := format.Source(b.Bytes())
	if err != nil || calls < 300 {
		t.Fatalf("%d system calls: %v", calls, err)
	}
	return text
}
