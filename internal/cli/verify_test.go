package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// Every process that may open the database can verify it: the command itself, or the server that works on it.
func TestDoctorVerify(t *testing.T) {
	t.Parallel()
	env := environment(t)
	if out, errs, code := pawl(t, env, "doctor", "--verify"); code != exit.OK || !strings.Contains(out, "ok   12: A key has at most as many holders") || strings.Contains(out, " 40: ") || strings.Contains(out, " 61: ") { // an engine looks at 40, a replay at 61
		t.Errorf("alone: exit code %d\n%s%s", code, out, errs)
	}
	server := start(t, env, "server", "--listen", "127.0.0.1:0")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	out, errs, code := pawl(t, env, "doctor", "--verify", "-o", "json")
	if code != exit.OK || !strings.Contains(out, `"broken": []`) || !strings.Contains(out, `"state": "kept"`) {
		t.Errorf("beside a server: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code = pawl(t, append(env, "PAWL_SERVER="), "run", "noop"); code != exit.OK {
		t.Errorf("run: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code = pawl(t, env, "doctor", "--verify", "--replay"); code != exit.OK || !strings.Contains(out, "ok   40: ") || !strings.Contains(out, "ok   61: A recorded history follows from the rules") || !strings.Contains(errs, "1 history with 5 events replayed; of 0 histories") {
		t.Errorf("beside a server, with replay: exit code %d\n%s%s", code, out, errs)
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	server.code()
	if out, errs, code = pawl(t, env, "doctor", "--verify", "--replay"); code != exit.OK || !strings.Contains(out, "ok   61: ") || !strings.Contains(errs, "1 history with 5 events") {
		t.Errorf("alone, with replay: exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = pawl(t, env, "doctor", "--replay"); code != exit.Misuse {
		t.Errorf("--replay alone: exit code %d\n%s", code, errs)
	}
}
