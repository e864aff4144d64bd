package posttest

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

func buried(t *testing.T, r *Rig) {
	o := r.Office(t)
	var mu sync.Mutex
	bad := true
	got := make(chan post.Letter, 10)
	serve(t, o, post.Tells, 10, func(_ context.Context, l post.Letter) error {
		mu.Lock()
		defer mu.Unlock()
		if bad {
			return &post.Buried{Reason: "it is not a letter"}
		}
		got <- l
		return nil
	})
	send(t, o, post.Tells, "bad")
	dead, err := awaitDead(t, o, post.ListDead)
	eventually(t, o, "the line is empty", empty(post.Tells))
	if err != nil || len(dead) != 1 || dead[0].Size != len("bad") || dead[0].Line != post.Tells || dead[0].Reason != "it is not a letter" ||
		dead[0].Tries != 1 || dead[0].ID == "" {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	mu.Lock()
	bad = false
	mu.Unlock()
	if again, err := o.Dead(within(t), post.RedriveDead); err != nil || len(again) != 1 {
		t.Fatalf("redriven %+v, %v", again, err)
	}
	if l := receive(t, got); string(l.Body) != "bad" || l.Tries != 1 {
		t.Errorf("redriven as %+v", l)
	}
	eventually(t, o, "the line is empty", empty(post.Tells))
	if dead, err := o.Dead(within(t), post.ListDead); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// Putting dead letters back comes to an end also when they are buried again at once.
func buriedAgain(t *testing.T, r *Rig) {
	o := r.Office(t)
	serve(t, o, post.Tells, 10, func(context.Context, post.Letter) error { return &post.Buried{Reason: "x"} })
	const n = 20
	for range n {
		send(t, o, post.Tells, "bad")
	}
	eventually(t, o, "the line is empty", empty(post.Tells))
	if again, err := awaitDead(t, o, post.RedriveDead); err != nil || len(again) == 0 || len(again) > n {
		t.Errorf("redriven %d, %v", len(again), err)
	}
}

func dropped(t *testing.T, r *Rig) {
	o := r.Office(t)
	for _, line := range post.Lines() {
		serve(t, o, line, 10, func(context.Context, post.Letter) error { return &post.Buried{Reason: "x"} })
		send(t, o, line, "bad")
	}
	for ctx := within(t); ; {
		dead, err := o.Dead(ctx, post.ListDead)
		if err == nil && len(dead) == len(post.Lines()) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("dead letters %+v, %v", dead, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if dead, err := o.Dead(within(t), post.DropDead); err != nil || len(dead) != len(post.Lines()) {
		t.Fatalf("dropped %+v, %v", dead, err)
	}
	if dead, err := o.Dead(within(t), post.ListDead); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// An ask that was buried is not sent again: it would count as new.
func askBuried(t *testing.T, r *Rig) {
	o := r.Office(t)
	got := make(chan post.Letter, 10)
	serve(t, o, post.Asks, 10, func(_ context.Context, l post.Letter) error {
		got <- l
		return &post.Buried{Reason: "x"}
	})
	send(t, o, post.Asks, "take")
	receive(t, got)
	if dead, err := awaitDead(t, o, post.RedriveDead); err != nil || len(dead) != 1 || dead[0].Size != len("take") {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	if dead, err := o.Dead(within(t), post.ListDead); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
	if lines, err := o.Backlog(within(t)); err != nil || lines[post.Asks].Letters != 0 || len(got) > 0 {
		t.Errorf("an ask was sent again: %+v, %v", lines, err)
	}
}

// A letter that is delivered again and again, as one that kills its readers is, ends among the dead ones.
func unsettled(t *testing.T, r *Rig) {
	o := r.Office(t)
	var mu sync.Mutex
	tries := 0
	serve(t, o, post.Tells, 10, func(context.Context, post.Letter) error {
		mu.Lock()
		defer mu.Unlock()
		tries++
		return errNotNow
	})
	send(t, o, post.Tells, "deadly")
	dead, err := awaitDead(t, o, post.ListDead)
	eventually(t, o, "the line is empty", empty(post.Tells))
	mu.Lock()
	defer mu.Unlock()
	most := cmp.Or(r.Tries, post.MostTries)
	if err != nil || len(dead) != 1 || tries != most || dead[0].Tries < most || dead[0].Line != post.Tells || !strings.Contains(dead[0].Reason, "never settled") {
		t.Errorf("after %d deliveries dead letters %+v, %v", tries, dead, err)
	}
}

// awaitDead waits until there is a dead letter.
func awaitDead(t *testing.T, o post.Office, do post.DeadAction) ([]post.DeadLetter, error) {
	t.Helper()
	for ctx := within(t); ; <-time.After(20 * time.Millisecond) {
		if dead, err := o.Dead(ctx, do); err != nil || len(dead) > 0 || ctx.Err() != nil {
			return dead, err
		}
	}
}
