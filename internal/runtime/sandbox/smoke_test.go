//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

func TestSmoke(t *testing.T) {
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range r.Diagnose(context.Background()) {
		fmt.Printf("%+v\n", f)
	}
	var out, errb bytes.Buffer
	run, err := r.Start(context.Background(), runtime.Spec{Argv: []string{"sh", "-c", "id; pwd; ls -la / /dev /etc /work /proc/1; cat /proc/self/status | grep -E 'Cap|Sec|NoNew'; cat /proc/self/cgroup /proc/self/mounts; echo hi >&2; exit 3"}, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: &out, Stderr: &errb})
	if err != nil {
		t.Fatal(err)
	}
	res := run.Wait()
	fmt.Println(out.String(), errb.String())
	fmt.Printf("%+v\n", res)
}
