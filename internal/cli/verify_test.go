package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// The database is verified by every process that may open it: the command itself, or the server that works on it.
func TestDoctorVerify(t *testing.T) {
	t.Parallel()
	env := environment(t)
	if out, errs, code := pawl(t, env, "doctor", "--verify"); code != exit.OK || strings.Count(out, "ok ") != len(promises)-1 { // only a replay shows one of them
		t.Errorf("alone: exit code %d\n%s%s", code, out, errs)
	}
	server := start(t, env, "server", "--listen", "127.0.0.1:0")
	within(t, 30*time.Second, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	out, errs, code := pawl(t, env, "doctor", "--verify", "-o", "json")
	if code != exit.OK || !strings.Contains(out, `"broken": []`) {
		t.Errorf("beside a server: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code = pawl(t, append(env, "PAWL_SERVER="), "run", "noop"); code != exit.OK {
		t.Errorf("run: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code = pawl(t, env, "doctor", "--verify", "--replay"); code != exit.OK || !strings.Contains(out, "ok   61: "+promises[61]) || !strings.Contains(errs, "1 history with 5 events replayed; of 0 histories") {
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

func TestVerificationIsPrintedByNumber(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app.App{Out: &out, Err: &errs}
	v := &api.Verification{Broken: []api.Violation{{Invariant: 12, Execution: "ex_1", Message: "3 holders"}, {Invariant: 99, Message: "unheard of"}}}
	for range 30 {
		v.Broken = append(v.Broken, api.Violation{Invariant: 6, Execution: "ex_2", Message: "a hole"})
	}
	printVerification(a, v)
	for _, want := range []string{"FAIL 12: " + promises[12] + " (broken 1 times)\n         ex_1: 3 holders\n", "(no execution): unheard of", "… and 10 more", "ok    1: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Count(out.String(), "FAIL") != 3 {
		t.Error(out.String())
	}
}
