package flow

import (
	"errors"
	"testing"
)

// An attempt moves to the next session unchanged; later reports of the old one are fenced, even the next event.
func TestInherit(t *testing.T) {
	next := ID{9, 9, 9}
	d := held(t, Request{})
	if rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning)}}, nil, nil, t0, 0); rc.Verdict != Applied {
		t.Fatalf("%+v", rc)
	}
	d = reload(d)
	if err := d.Inherit(session, next); err != nil {
		t.Fatal(err)
	}
	if !d.Changed() || len(d.Events) > 0 || d.Owner != next || d.Attempt != 1 || d.NextSeq != 5 || d.Stage != Running || d.Place != Held {
		t.Errorf("%+v", d.State)
	}
	d = reload(d)
	end := Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 5, EvFailed)}}
	if rc := d.Report(session, end, nil, nil, t0, 0); rc.Verdict != Fenced || d.Changed() {
		t.Errorf("a late end: %+v", rc)
	}
	if rc := d.Report(next, end, nil, nil, t0, 0); rc.Verdict != Applied || d.Stage != Failed {
		t.Errorf("%+v, %s", rc, d.Stage)
	}
}

// An attempt is moved only if the session holds it and none of its events is missing.
func TestInheritNot(t *testing.T) {
	next := ID{9, 9, 9}
	gap := held(t, Request{})
	if rc := gap.Report(session, Report{Execution: gap.ID, Attempt: 1, Events: []Event{event(gap, 5, EvCompleted)}}, nil, nil, t0, 0); rc.Verdict != Stored {
		t.Fatalf("%+v", rc)
	}
	lost := held(t, Request{})
	if err := lost.Lose("gone", t0, 0); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		d      *Draft
		before ID
	}{
		"another's":  {held(t, Request{}), ID{1, 2}},
		"nobody's":   {held(t, Request{}), ID{}},
		"with a gap": {reload(gap), session},
		"taken back": {reload(lost), session},
	} {
		was := c.d.State
		if err := c.d.Inherit(c.before, next); !errors.Is(err, ErrIllegalMove) || c.d.State != was {
			t.Errorf("%s: %v, %+v", name, err, c.d.State)
		}
	}
}
