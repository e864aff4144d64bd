package operate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
)

func TestVerificationIsPrintedByNumber(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app.App{Out: &out, Err: &errs}
	v := &api.Verification{Broken: []api.Violation{{Invariant: 12, Execution: "ex_1", Message: "3 holders"}, {Invariant: 99, Message: "unheard of"}}}
	for range 30 {
		v.Broken = append(v.Broken, api.Violation{Invariant: 6, Execution: "ex_2", Message: "a hole"})
	}
	printVerification(a, v)
	for _, want := range []string{"FAIL 12: " + Promises[12] + " (broken 1 times)\n         ex_1: 3 holders\n", "(no execution): unheard of", "… and 10 more", "ok    1: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Count(out.String(), "FAIL") != 3 {
		t.Error(out.String())
	}
}
