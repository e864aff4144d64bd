package brokerrpctest

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

func deadLettered(t *testing.T, r *Rig) {
	o := r.Transport(t)
	var mu sync.Mutex
	bad := true
	got := make(chan brokerrpc.Message, 10)
	serve(t, o, brokerrpc.Tells, 10, func(_ context.Context, l brokerrpc.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if bad {
			return &brokerrpc.Unreadable{Reason: "it is not a message"}
		}
		got <- l
		return nil
	})
	send(t, o, brokerrpc.Tells, "bad")
	dead, err := awaitDead(t, o, brokerrpc.ListDead)
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
	if err != nil || len(dead) != 1 || dead[0].Size != len("bad") || dead[0].Line != brokerrpc.Tells ||
		dead[0].Reason != "it is not a message" ||
		dead[0].Tries != 1 || dead[0].ID == "" {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	mu.Lock()
	bad = false
	mu.Unlock()
	if again, err := o.Dead(within(t), brokerrpc.RedriveDead); err != nil || len(again) != 1 {
		t.Fatalf("redriven %+v, %v", again, err)
	}
	if l := receive(t, got); string(l.Body) != "bad" || l.Tries != 1 {
		t.Errorf("redriven as %+v", l)
	}
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
	if dead, err := o.Dead(within(t), brokerrpc.ListDead); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// Redriving dead letters ends even if they are dead-lettered again at once.
func deadLetteredAgain(t *testing.T, r *Rig) {
	o := r.Transport(t)
	serve(t, o, brokerrpc.Tells, 10, func(context.Context, brokerrpc.Message) error { return &brokerrpc.Unreadable{Reason: "x"} })
	const n = 20
	for range n {
		send(t, o, brokerrpc.Tells, "bad")
	}
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
	if again, err := awaitDead(t, o, brokerrpc.RedriveDead); err != nil || len(again) == 0 || len(again) > n {
		t.Errorf("redriven %d, %v", len(again), err)
	}
}

func dropped(t *testing.T, r *Rig) {
	o := r.Transport(t)
	for _, line := range brokerrpc.Lines() {
		serve(t, o, line, 10, func(context.Context, brokerrpc.Message) error { return &brokerrpc.Unreadable{Reason: "x"} })
		send(t, o, line, "bad")
	}
	for ctx := within(t); ; {
		dead, err := o.Dead(ctx, brokerrpc.ListDead)
		if err == nil && len(dead) == len(brokerrpc.Lines()) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("dead letters %+v, %v", dead, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if dead, err := o.Dead(within(t), brokerrpc.DropDead); err != nil || len(dead) != len(brokerrpc.Lines()) {
		t.Fatalf("dropped %+v, %v", dead, err)
	}
	if dead, err := o.Dead(within(t), brokerrpc.ListDead); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// A dead-lettered ask is not sent again: it would seem new.
func askDeadLettered(t *testing.T, r *Rig) {
	o := r.Transport(t)
	got := make(chan brokerrpc.Message, 10)
	serve(t, o, brokerrpc.Asks, 10, func(_ context.Context, l brokerrpc.Message) error {
		got <- l
		return &brokerrpc.Unreadable{Reason: "x"}
	})
	send(t, o, brokerrpc.Asks, "take")
	receive(t, got)
	if dead, err := awaitDead(t, o, brokerrpc.RedriveDead); err != nil || len(dead) != 1 || dead[0].Size != len("take") {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	if dead, err := o.Dead(within(t), brokerrpc.ListDead); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
	if lines, err := o.Backlog(within(t)); err != nil || lines[brokerrpc.Asks].Messages != 0 || len(got) > 0 {
		t.Errorf("an ask was sent again: %+v, %v", lines, err)
	}
}

// A message that is never settled, for example because it kills its readers, is dead-lettered.
func unsettled(t *testing.T, r *Rig) {
	o := r.Transport(t)
	var mu sync.Mutex
	tries := 0
	serve(t, o, brokerrpc.Tells, 10, func(context.Context, brokerrpc.Message) error {
		mu.Lock()
		defer mu.Unlock()
		tries++
		return errNotNow
	})
	send(t, o, brokerrpc.Tells, "deadly")
	dead, err := awaitDead(t, o, brokerrpc.ListDead)
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
	mu.Lock()
	defer mu.Unlock()
	most := cmp.Or(r.Tries, brokerrpc.MostTries)
	if err != nil || len(dead) != 1 || tries != most || dead[0].Tries < most || dead[0].Line != brokerrpc.Tells ||
		!strings.Contains(dead[0].Reason, "never settled") {
		t.Errorf("after %d deliveries dead letters %+v, %v", tries, dead, err)
	}
}

// awaitDead waits until there is a dead letter.
func awaitDead(t *testing.T, o brokerrpc.Transport, do brokerrpc.DeadAction) ([]brokerrpc.DeadLetter, error) {
	t.Helper()
	for ctx := within(t); ; <-time.After(20 * time.Millisecond) {
		if dead, err := o.Dead(ctx, do); err != nil || len(dead) > 0 || ctx.Err() != nil {
			return dead, err
		}
	}
}
