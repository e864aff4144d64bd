package handofftest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// input checks that the input of an execution reaches its worker, in order, as it comes, and as often as it is requested.
func input(t *testing.T, b *bench) {
	session, a := b.held(t)
	q := handoff.InputQuery{Execution: a.Execution, Attempt: a.Attempt}
	read := func(from int64, want string, wantLast bool) {
		t.Helper()
		q.From = from
		in, err := b.Handoff.Input(b.ctx(t), session, q)
		if err != nil || string(in.Data) != want || in.Last != wantLast {
			t.Errorf("input from %d: %q, the last: %v, %v; want %q, %v", from, in.Data, in.Last, err, want, wantLast)
		}
	}
	b.Feed(t, a.Execution, "before anybody asks\x00\xff", false)
	read(0, "before anybody asks\x00\xff", false)
	read(7, "anybody asks\x00\xff", false)

	short, cancel := context.WithTimeout(b.ctx(t), 50*time.Millisecond)
	defer cancel()
	q.From = 21
	if in, err := b.Handoff.Input(short, session, q); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("input while there is none: %+v, %v; want to wait", in, err)
	}

	type answer struct {
		in  handoff.Input
		err error
	}
	waiting := make(chan answer, 1)
	ctx := b.ctx(t)
	go func() {
		in, err := b.Handoff.Input(ctx, session, q)
		waiting <- answer{in, err}
	}()
	b.Feed(t, a.Execution, "then", false)
	if got := <-waiting; got.err != nil || string(got.in.Data) != "then" || got.in.Last {
		t.Errorf("what was waited for: %+v, %v", got.in, got.err)
	}

	large := strings.Repeat("0123456789", 100_000)
	b.Feed(t, a.Execution, large, false)
	b.Feed(t, a.Execution, "", true)
	var got strings.Builder
	for last := false; !last; {
		q.From = int64(25 + got.Len())
		in, err := b.Handoff.Input(b.ctx(t), session, q)
		if err != nil || in.Empty() {
			t.Fatalf("input from %d: %d bytes, %v", q.From, len(in.Data), err)
		}
		got.Write(in.Data)
		last = in.Last
	}
	if got.String() != large {
		t.Errorf("a large piece: %d bytes arrived, or others", got.Len())
	}
	read(int64(25+len(large)), "", true)
	read(int64(25+len(large)), "", true)
}

// inputOfOthers checks that only the holder of an attempt can read its input.
func inputOfOthers(t *testing.T, b *bench) {
	session, a := b.held(t)
	other := b.open(t)
	b.Feed(t, a.Execution, "a secret", true)
	q := handoff.InputQuery{Execution: a.Execution, Attempt: a.Attempt}
	next, unknown := q, q
	next.Attempt++
	unknown.Execution = flow.ID{1, 2, 3}
	for say, ask := range map[string]struct {
		session flow.ID
		q       handoff.InputQuery
		want    error
	}{
		"another session's":         {other, q, handoff.ErrNotHeld},
		"of another attempt":        {session, next, handoff.ErrNotHeld},
		"of an unknown execution":   {session, unknown, handoff.ErrNotHeld},
		"by a session that is none": {flow.ID{9, 9}, q, handoff.ErrSessionLost},
	} {
		if in, err := b.Handoff.Input(b.ctx(t), ask.session, ask.q); !errors.Is(err, ask.want) || !in.Empty() {
			t.Errorf("input %s: %+v, %v; want %v", say, in, err, ask.want)
		}
	}

	// The next attempt reads the same again.
	b.Pass(2 * handoff.Lease)
	later := b.open(t)
	again := b.take(t, later)
	if again.Execution != a.Execution || again.Attempt != 2 {
		t.Fatalf("took %s, attempt %d", again.Execution, again.Attempt)
	}
	in, err := b.Handoff.Input(b.ctx(t), later, next)
	if err != nil || string(in.Data) != "a secret" || !in.Last {
		t.Errorf("input of the second attempt: %+v, %v", in, err)
	}
	b.report(t, later, flow.Report{Execution: again.Execution, Attempt: 2, Events: []flow.Event{
		{Seq: again.NextSeq, Attempt: 2, Type: flow.EvRunning, At: time.Now().UTC()},
		{Seq: again.NextSeq + 1, Attempt: 2, Type: flow.EvCompleted, At: time.Now().UTC(), Outcome: &flow.Outcome{Output: json.RawMessage(`1`)}},
	}})
	if in, err := b.Handoff.Input(b.ctx(t), later, next); !errors.Is(err, handoff.ErrNotHeld) {
		t.Errorf("input of an execution that has ended: %+v, %v; want %v", in, err, handoff.ErrNotHeld)
	}
}
