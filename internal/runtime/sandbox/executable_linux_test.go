package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
)

// TestBinaryIsOutOfReach runs a binary that its user may change and makes a sandbox execute it, which programs can do by naming
// /proc/self/exe as their interpreter. They must not be able to write to the binary through it.
func TestBinaryIsOutOfReach(t *testing.T) {
	const stage = "PAWL_TEST_STAGE"
	switch os.Getenv(stage) {
	case "": // as the user who tests
		const nobody = 65534
		dir := publicDir(t)
		binary := copyTestBinary(t, dir)
		cmd := exec.Command(binary, "-test.v", "-test.run", "^TestBinaryIsOutOfReach$")
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "GORACE=atexit_sleep_ms=0", stage + "=host"}
		if os.Geteuid() == 0 {
			if err := os.Chown(binary, nobody, nobody); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	case "host": // as the owner of the binary
		r := factory(Options{})(t)
		defer r.Close()
		for _, script := range []string{"#!/proc/self/exe -test.run=^TestBinaryIsOutOfReach$\n", ""} {
			spec := runtime.Spec{Argv: []string{"./script"}, Env: []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0", stage + "=inside"}}
			if script == "" {
				spec.Argv = []string{"/proc/self/exe", "-test.run=^TestBinaryIsOutOfReach$"}
			}
			spec.Files = []runtime.File{{Path: "script", Mode: 0o755, Content: []byte(script)}}
			var out bytes.Buffer
			spec.Stdout = &out
			run, err := r.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if result := run.Wait(); result.Verdict != runtime.OK || !bytes.Contains(out.Bytes(), []byte("out of reach\n")) {
				t.Errorf("%q: %+v %s", spec.Argv, result, out.String())
			}
		}
	case "inside": // in the sandbox, as a process that executes the binary
		fd, err := unix.Open(ownBinary, unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Fchmod(fd, 0o644); err == nil {
			fmt.Println("it can be made unusable for others")
			return
		}
		seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
		writable := unix.Access(ownBinary, unix.W_OK) == nil
		if writable && (err != nil || seals&unix.F_SEAL_WRITE == 0) {
			fmt.Println("it can be written to when nobody executes it")
			return
		}
		fmt.Println("out of reach")
	}
}
