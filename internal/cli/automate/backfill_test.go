package automate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// A backfill lists each time that it skips, with its execution and how that ended, and says which times have no result.
func TestBackfillIsTold(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC) }
	done := api.Backfilled{
		Fired: []api.BackfilledTime{
			{Nominal: at(1), Execution: "ex_1", Status: api.Scheduled},
			{Nominal: at(2), Execution: "ex_2", Status: api.Cancelled, ErrorCode: "key_full"},
			{Nominal: at(3)},
		},
		PassedOver: []api.BackfilledTime{
			{Nominal: at(4), Execution: "ex_4", Why: "on_time", Status: api.Completed},
			{Nominal: at(5), Execution: "ex_5", Why: "backfill", Tag: "backfill", Status: api.Cancelled, ErrorCode: "key_full"},
			{Nominal: at(6), Execution: "ex_6", Why: "backfill", Tag: "backfill:fixed"},
			{Nominal: at(7), Execution: "ex_7", Why: "catch_up", Status: api.Running},
		},
		WhenFull: "cancel_new",
	}
	var out bytes.Buffer
	writeBackfilled(&out, &done)
	const want = `2026-11-01T01:00:00Z ex_1
2026-11-01T02:00:00Z ex_2 cancelled (key_full)
2026-11-01T03:00:00Z
2026-11-01T04:00:00Z passed over: ex_4 of the schedule is completed
2026-11-01T05:00:00Z passed over: ex_5 of backfill is cancelled (key_full)
2026-11-01T06:00:00Z passed over: ex_6 of backfill:fixed is removed
2026-11-01T07:00:00Z passed over: ex_7 of the schedule is running
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	warnings := func(dry bool, parts ...*api.Backfilled) []string {
		var n backfilled
		for _, done := range parts {
			n.add(done)
		}
		return n.warnings(dry)
	}
	told := strings.Join(warnings(false, &done), "\n")
	for _, part := range []string{"1 execution of those passed over did not complete; --again TAG", "1 execution ended at once (key_full)", "when_full: cancel_new"} {
		if !strings.Contains(told, part) {
			t.Errorf("%q is not in %q", part, told)
		}
	}
	if told := warnings(true, &api.Backfilled{Fired: done.Fired[2:], PassedOver: done.PassedOver[:1]}); len(told) > 0 {
		t.Errorf("where there is nothing to tell: %q", told)
	}
	one := []api.BackfilledTime{{}}
	dry := warnings(true, &api.Backfilled{Fired: one, WhenFull: "cancel_oldest"}, &api.Backfilled{Fired: one})
	if len(dry) != 1 || !strings.Contains(dry[0], "when_full: cancel_oldest") {
		t.Errorf("a dry run: %q", dry)
	}
}
