package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pawl-run/pawl/internal/flow"
)

// batches is a batcher whose clock the file sets.
type batches struct {
	testing.TB
	b     batcher
	now   time.Time
	begun []*batch
}

// TestBatcher runs testdata/batcher.txt; the file explains its commands.
func TestBatcher(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/batcher.txt", func(t *testing.T, d *datadriven.TestData) string {
		s, began := &batches{TB: t}, time.Now()
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			at, commands, _ := strings.Cut(strings.TrimSpace(line), ": ")
			after, err := time.ParseDuration(at)
			if err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			s.now = began.Add(after)
			for command := range strings.SplitSeq(commands, ", ") {
				if says := s.run(command); says != "" {
					fmt.Fprintf(&out, "%s: %s\n", at, says)
				}
			}
		}
		return out.String()
	})
}

// run executes one command, and returns what the file shows of it.
func (s *batches) run(command string) string {
	word, args, err := datadriven.ParseLine(command)
	if err != nil {
		s.Fatal(err)
	}
	n := 1
	if len(args) > 0 {
		n, _ = strconv.Atoi(args[0].Key)
	}
	switch word {
	case "call":
		err = s.b.add(handedIn(s, n, &datadriven.TestData{Cmd: word, CmdArgs: args}), s.now)
	case "calls":
		for range n {
			err = errors.Join(err, s.b.add(submissions(1), s.now))
		}
	case "renewal":
		renewal := newRequest(nil, classSession, func(context.Context, *transaction) (struct{}, error) { return struct{}{}, nil })
		err = s.b.add([]op{renewal}, s.now)
	case "contended":
		s.b.contention.waited([]string{"key"}, contendedFrom, s.now)
	case "steps", "wide-steps":
		for i := range n {
			s.b.followUps.add(&advanceOp{id: flow.ID{word[0], byte(i >> 8), byte(i)}, wide: word == "wide-steps"})
		}
	case "told":
		s.b.wokenWaiters += n
	case "end":
		s.b.done(s.begun[n-1], s.now)
	case "stalled":
		return "stalled for " + s.b.stalled(s.now).String()
	case "next":
		return s.next()
	default:
		s.Fatalf("there is no command %q", command)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// handedIn is one call: n submissions, each with so many bytes of input, or in a label, or the last one with a key.
func handedIn(t testing.TB, n int, d *datadriven.TestData) []op {
	ops := submissions(n)
	var input, label int
	d.MaybeScanArgs(t, "input", &input)
	d.MaybeScanArgs(t, "label", &label)
	for i := range ops {
		r := &ops[i].(*submitOp).request
		if r.Input = make([]byte, input); label > 0 {
			r.Labels = map[string]string{"l": strings.Repeat("v", label-1)}
		}
		if d.HasArg("key") && i == n-1 {
			r.Key = "key"
		}
	}
	return ops
}

// next begins a transaction if one may begin now.
func (s *batches) next() string {
	if wait := s.b.wait(s.now); wait > 0 {
		return "wait " + wait.String()
	}
	b := s.b.next(false, s.now)
	if len(b.ops) == 0 {
		return "nothing may begin"
	}
	s.b.begin(b, s.now)
	s.begun = append(s.begun, b)
	says := fmt.Sprintf("transaction %d: requests=%d", len(s.begun), len(b.ops))
	if b.callers > 0 {
		says += fmt.Sprintf(" answers=%d", b.callers)
	}
	if b.sessionOps > 0 {
		says += " renewals first"
	}
	return says
}

func submissions(n int) []op {
	ops := make([]op, n)
	for i := range ops {
		ops[i] = &submitOp{}
	}
	return ops
}
