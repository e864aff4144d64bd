package orchestration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// TestRounds has one row for each way a repeat can end.
func TestRounds(t *testing.T) {
	t.Parallel()
	const ok = "completed"
	for _, row := range []struct {
		name, repeat, more string
		rounds             []string // their ends: ok with the number as output, or an error code
		want               string   // rounds, status, output, and error of the task after it
	}{
		{name: "until holds over the first round", repeat: "until: output == 1, max: 3", rounds: []string{ok}, want: "1 completed 1 null"},
		{name: "until holds later", repeat: "until: output == 3, max: 3", rounds: []string{ok, ok, ok}, want: "3 completed 3 null"},
		{name: "max", repeat: "until: output == 4, max: 3", more: "continue_on_error: true", rounds: []string{ok, ok, ok},
			want: `3 failed 3 {"code":"not_reached","message":"tasks.poll.repeat.until: ${{ output == 4 }} did not hold after round 3 of at most 3"}`},
		{name: "a failed round goes on where it may", repeat: "until: output == 3, max: 5", more: "continue_on_error: true", rounds: []string{ok, "boom", ok}, want: "3 completed 3 null"},
		{name: "until an error", repeat: `until: "error != null && error.code == 'boom'", max: 5`, more: "continue_on_error: true", rounds: []string{ok, "other", "boom"}, want: "3 completed null null"},
		{name: "until a status", repeat: `until: "status == 'failed'", max: 5`, more: "continue_on_error: true", rounds: []string{ok, "boom"}, want: "2 completed null null"},
		{name: "an expression that fails over a failed round does not hold", repeat: "until: output.x == 3, max: 1", more: "continue_on_error: true", rounds: []string{"boom"},
			want: `1 failed null {"code":"not_reached","message":"tasks.poll.repeat.until: ${{ output.x == 3 }} did not hold after round 1 of at most 1"}`},
		{name: "all of the time is over", repeat: "until: output == 3, max: 5", more: "continue_on_error: true", rounds: []string{ok, "total_timeout"}, want: `2 failed null {"code":"total_timeout","message":"it broke"}`},
		{name: "an expression that fails", repeat: "until: output.x == 3, max: 5", more: "continue_on_error: true", rounds: []string{ok},
			want: `1 failed 1 {"code":"expression_error","message":"round 1: tasks.poll.repeat.until: ${{ output.x == 3 }}: `},
		{name: "a round sees the one before it", repeat: "until: output == 2, max: 5", more: `with: {n: "${{ previous + round }}"}`, rounds: nil,
			want: `0 failed null {"code":"expression_error","message":"tasks.poll.with.n: ${{ previous + round }}: `},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			more := ""
			if row.more != "" {
				more = ", " + row.more
			}
			w := workflow(t, fmt.Sprintf(`
  poll: {action: noop, repeat: {%s}%s}
  use: {action: noop, needs: [poll], if: always(), with: {s: "${{ tasks.poll.status }}", o: "${{ tasks.poll.output }}", e: "${{ tasks.poll.error }}"}}
`, row.repeat, more))
			st := &State{Tasks: make([]Progress, len(w.Tasks))}
			k, rounds, got := Track(w, st), 0, ""
			latest := Output{}
			f := &Facts{ID: "ex_1", Output: func(int) Output { return latest }}
			var plan Plan
			for taken := 0; plan.Stage == 0; {
				next := k.Next()
				if next.Empty() {
					t.Fatalf("it waits for nothing: %+v", st)
				}
				Take(w, st, next, f, &plan)
				for ; taken < len(plan.Children); taken++ {
					c := &plan.Children[taken]
					if c.Task.Name == "use" {
						var in struct{ S, O, E json.RawMessage }
						if err := json.Unmarshal(c.Input, &in); err != nil {
							t.Fatal(err)
						}
						got = fmt.Sprintf("%d %s %s %s", rounds, strings.Trim(string(in.S), `"`), in.O, in.E)
						k.Ended(c.Task.Index, flow.Completed)
						continue
					}
					if rounds++; rounds > len(row.rounds) {
						t.Fatalf("round %d starts", rounds)
					}
					latest = Output{Single: fmt.Append(nil, rounds), Stage: flow.Completed}
					if code := row.rounds[rounds-1]; code != ok {
						latest = Output{Stage: flow.Failed, Error: &flow.Error{Code: code, Message: "it broke"}}
					}
					k.Ended(c.Task.Index, latest.Stage)
				}
			}
			if !strings.HasPrefix(got, row.want) {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}
