package operate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	rows "github.com/pawl-run/pawl/internal/store/verification"
)

func TestVerificationIsPrintedByNumber(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app.App{Out: &out, Err: &errs}
	v := &api.Verification{Broken: []api.Violation{{Invariant: 12, Execution: "ex_1", Message: "3 holders"}, {Invariant: 99, Message: "unheard of"}}}
	for range 30 {
		v.Broken = append(v.Broken, api.Violation{Invariant: 6, Execution: "ex_2", Message: "a hole"})
	}
	v.Promises = []api.Invariant{{Invariant: 1, Says: "as the lifecycle allows", LookedAt: "every event", State: rows.Kept},
		{Invariant: 6, Says: "no hole", LookedAt: "every event", State: rows.Broken, Broken: 30},
		{Invariant: 12, Says: "no more than its limit", LookedAt: "every key", State: rows.Broken, Broken: 1}, {Invariant: 19, Says: "numbered from 0", LookedAt: "every item", State: rows.Unknown}}
	printVerification(a, v)
	for _, want := range []string{"FAIL 12: no more than its limit (broken 1 times)\n         ex_1: 3 holders\n", "FAIL 99: see docs/invariants.md (broken 1 times)\n         (no execution): unheard of", "… and 10 more", "ok    1: as the lifecycle allows (every event)\n", "?    19: numbered from 0 (not looked at to the end"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Count(out.String(), "FAIL") != 3 {
		t.Error(out.String())
	}
}
