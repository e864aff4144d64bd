//go:build unix

package runtimetest

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// reopened opens the standard streams by name, as programs do that read the file /dev/stdin. The kernel checks such an open
// against the owner of the pipe, and not against the descriptor that the program holds.
func reopened(t testing.TB, r runtime.Runtime) {
	spec := shell(`cat /dev/stdin; echo out > /dev/stdout; echo bad > /dev/stderr; echo fd > /proc/self/fd/1`)
	spec.Stdin = strings.NewReader("in\n")
	result, stdout, stderr := finish(t, r, spec)
	wantVerdict(t, result, runtime.OK)
	if stdout != "in\nout\nfd\n" || stderr != "bad\n" {
		t.Errorf("with an input: stdout %q, stderr %q", stdout, stderr)
	}
	result, stdout, stderr = finish(t, r, shell(`cat /dev/stdin; cat < /proc/self/fd/0; (echo out > /dev/stdout); echo bad > /dev/stderr`))
	wantVerdict(t, result, runtime.OK)
	if stdout != "out\n" || stderr != "bad\n" {
		t.Errorf("without an input: stdout %q, stderr %q", stdout, stderr)
	}
}
