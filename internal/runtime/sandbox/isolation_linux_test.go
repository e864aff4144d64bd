package sandbox

import (
	"bytes"
	"os"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// TestSecondLayer checks the protection that remains if the seccomp filter is circumvented.
func TestSecondLayer(t *testing.T) {
	r := factory(Options{})(t)
	defer r.Close()
	var out bytes.Buffer
	run, err := r.Start(t.Context(), runtime.Spec{
		Argv:   []string{"sh", "-c", "cat /proc/sys/user/max_user_namespaces; grep -c ^Cap.*0000000000000000 /proc/self/status; head -1 /proc/self/uid_map | wc -w; ulimit -c 0; grep core /proc/self/limits | tr -s ' '; ls /sys /run /var /root /home /etc/shadow 2>/dev/null"},
		Env:    []string{"PATH=/usr/bin:/bin"},
		Stdout: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	run.Wait()
	// No nested user namespaces, five empty sets of capabilities, one line of ids, a core limit that cannot be set to 0, which would be
	// ineffective, and nothing of these directories.
	if want := "0\n5\n3\nMax core file size 1 1 bytes \n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if text, _ := os.ReadFile("/proc/sys/user/max_user_namespaces"); string(text) == "0\n" {
		t.Error("the host's own limit is 0 now")
	}
}
