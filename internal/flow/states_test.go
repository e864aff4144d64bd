package flow

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/states.md from the tables")

const statesDoc = "../../docs/states.md"

// docs/states.md is drawn from the tables; `go test ./internal/flow -update` writes it.
func TestStatesDocIsDrawnFromTheTables(t *testing.T) {
	want := drawStates()
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(statesDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(statesDoc)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the tables say; run: go test ./internal/flow -update", statesDoc)
	}
}

// inquiryMeanings describe the states of an inquiry.
var inquiryMeanings = map[InquiryState]string{
	InquiryOpen: "people may answer", InquiryAnswered: "a person has answered; it stays so", InquiryExpired: "no answer came in time; a default becomes the answer",
	InquiryWithdrawn: "its execution was cancelled or timed out before",
}

func drawStates() string {
	var b strings.Builder
	b.WriteString(`# States

Drawn from the tables in ` + "`internal/flow/moves.go`" + ` by ` + "`go test ./internal/flow -update`" + `; a test fails when the two differ.

This page is for people who read histories of executions (` + "`pawl events ID`" + `): every move that an execution can make. For example, an execution that waits in its queue is
` + "`scheduled`" + `, and becomes ` + "`provisioning`" + ` when a worker has it. An execution's position is its attempt and its stage, and it only increases. The stage moves by these events:

| event | from | to | why |
|---|---|---|---|
`)
	name := func(s Stage) string {
		if s == 0 {
			return "(new)"
		}
		return s.String()
	}
	for _, m := range moves {
		var from []string
		for _, s := range m.From {
			from = append(from, name(s))
		}
		to := name(m.To)
		if m.Opens {
			to += " of the next attempt"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", m.Event, strings.Join(from, ", "), to, m.Why)
	}
	b.WriteString("\n```mermaid\nstateDiagram-v2\n")
	for _, m := range moves {
		for _, s := range m.From {
			from := s.String()
			if s == 0 {
				from = "[*]"
			}
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, m.To, m.Event)
		}
	}
	b.WriteString("```\n\nThese events leave the stage where it is:\n\n| event | while |\n|---|---|\n")
	for _, t := range []EventType{EvWaiting, EvLost, EvAdvanced, EvProgress, EvPaused, EvResumed} {
		var in []string
		for _, s := range marks[t] {
			in = append(in, s.String())
		}
		fmt.Fprintf(&b, "| %s | %s |\n", t, strings.Join(in, ", "))
	}
	b.WriteString(`
A failed or timed-out attempt that is tried again is followed, in the same commit, by ` + "`requested`" + ` of the next attempt; so an
execution has ended exactly when a terminal event is the last of its history. ` + "`lost`" + ` is likewise followed by ` + "`requested`" + `,
` + "`failed`" + `, or the ordered end.

An execution is in one place at a time:

| place | meaning |
|---|---|
| delayed | requested; waits for its time. Or scheduled, and put aside after a decision about it was refused: it is not in its queue and holds no key |
| waiting | requested; stands in the line of its concurrency key. Or scheduled, put aside in its queue, and its key was full when it was tried again |
| ready | scheduled; in its queue, holds its key |
| held | provisioning or running; owned by a worker session or by the engine, holds its key |
| finished | completed, failed, cancelled or timed_out |

The engine runs workflows, sleeps, questions (` + "`ask`" + `) and waits itself: they go from requested to running in one step, and are held
without an owner.

A question is an inquiry, which has a state too. It is open exactly while its execution is held:

| state | when |
|---|---|
`)
	for _, s := range []InquiryState{InquiryOpen, InquiryAnswered, InquiryExpired, InquiryWithdrawn} {
		fmt.Fprintf(&b, "| %s | %s |\n", s, inquiryMeanings[s])
	}
	b.WriteString("\nOne that is withdrawn, or has expired without a default, is open again when its execution or its workflow asks anew.\n")
	return b.String()
}
