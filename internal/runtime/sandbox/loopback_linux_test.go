package sandbox

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// A program can connect to itself on the loopback device of its network namespace.
func TestLoopback(t *testing.T) {
	r := factory(Options{})(t)
	defer r.Close()
	const source = `import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.socket(family)
    server.bind((host, 8080))
    server.listen()
    client = socket.create_connection(("localhost" if family == socket.AF_INET else host, 8080))
    client.sendall(b"hello " + host.encode() + b"\n")
    print(server.accept()[0].recv(99).decode(), end="")
    server.close()`
	var out, errs strings.Builder
	run, err := r.Start(t.Context(), runtime.Spec{
		Argv: []string{"/usr/bin/python3", "-S", "-c", source}, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: &out, Stderr: &errs,
	})
	if err != nil {
		t.Skipf("no Python: %v: apt install python3", err)
	}
	if result := run.Wait(); result.Verdict != runtime.OK || out.String() != "hello 127.0.0.1\nhello ::1\n" {
		t.Errorf("%+v\n%s%s", result, out.String(), errs.String())
	}
}
