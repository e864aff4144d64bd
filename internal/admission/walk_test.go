package admission

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pawl-run/pawl/internal/flow"
)

var verdicts = map[Verdict]string{Admit: "admit", Wait: "wait", Refuse: "refuse", Supersede: "supersede", Replaced: "replaced"}

// TestWalk runs the texts of testdata, which explain the rules. internal/engine/testdata/walk has the same commands for
// a whole engine.
func TestWalk(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "rate":
				return rate(t, d)
			case "line":
				return fairLine(d.Input)
			}
			var out strings.Builder
			for text := range strings.Lines(d.Input) {
				text = strings.TrimSpace(text)
				fmt.Fprintf(&out, "%s: %s\n", text, slot(t, d.Cmd, text))
			}
			return out.String()
		})
	})
}

// slot shows the verdict on an execution that arrives or returns, or whether one supersedes.
func slot(t *testing.T, command, text string) string {
	var holders, waiting, ending, limit int
	var when string
	_, args, err := datadriven.ParseLine("key " + text)
	if err != nil {
		t.Fatal(err)
	}
	d := &datadriven.TestData{CmdArgs: args}
	d.ScanArgs(t, "holders", &holders)
	d.ScanArgs(t, "limit", &limit)
	d.MaybeScanArgs(t, "waiting", &waiting)
	d.MaybeScanArgs(t, "ending", &ending)
	d.MaybeScanArgs(t, "when-full", &when)
	switch command {
	case "arrive":
		return verdicts[Arrive(holders, waiting, limit, flow.WhenFull(when))]
	case "return":
		return verdicts[Return(holders, limit, flow.WhenFull(when))]
	}
	if Supersedes(holders, waiting, ending, limit) {
		return "the oldest holder is ended"
	}
	return "nothing is ended"
}

// rate shows when executions that come at given times begin.
func rate(t *testing.T, d *datadriven.TestData) string {
	var limit, burst int
	var text string
	d.ScanArgs(t, "limit", &limit)
	d.ScanArgs(t, "burst", &burst)
	d.ScanArgs(t, "per", &text)
	span := func(text string) time.Duration {
		per, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return per
	}
	t0 := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	var tat, begin time.Time
	var out strings.Builder
	for _, after := range strings.Fields(d.Input) {
		begin, tat = Reserve(tat, t0.Add(span(after)), limit, span(text), burst)
		fmt.Fprintf(&out, "comes at %s, begins at %s\n", after, begin.Sub(t0))
	}
	return out.String()
}

// fairLine shows the order of admissions: "ada 2" are two executions of ada, "ada/3" has weight 3, "admit 4" admits four.
func fairLine(text string) string {
	l := &line{}
	var out strings.Builder
	for command := range strings.Lines(text) {
		f := strings.Fields(command)
		who, weight, _ := strings.Cut(f[0], "/")
		n, _ := strconv.Atoi(f[1])
		for range n {
			if who == "admit" {
				out.WriteString(l.admit() + " ")
				continue
			}
			w, _ := strconv.Atoi(weight)
			l.arrive(who, max(w, 1))
		}
		if who == "admit" {
			out.WriteString("\n")
		}
	}
	return strings.ReplaceAll(out.String(), " \n", "\n")
}
