package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/wirejson"
)

// Pause keeps a workflow's execution from starting tasks, until it is resumed or its time is over. Tasks that have begun continue.
type Pause struct {
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"` // zero: until it is resumed
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Stops means that the timers of the execution are stopped during the pause. The workflow's tasks that only wait for their time get such a
	// pause of their own.
	Stops bool `json:"stops,omitempty"`
}

// PausedFor is how long the timers of an execution were stopped in past pauses. It is replaced and never changed.
type PausedFor struct {
	All  time.Duration `json:"all_ns"`            // since it was accepted
	Here time.Duration `json:"here_ns,omitempty"` // since its attempt was claimed
}

// StandsStill reports whether the timers of the execution are stopped.
func (x *Execution) StandsStill() bool { return x.State.Pause != nil && x.State.Pause.Stops }

// WaitsForSlot reports whether the execution waits for its slot of a rate. No pause delays that: others have later
// slots, and beside them more would begin than the rate allows. A workflow that is paused meanwhile begins in its slot
// and starts no tasks.
func (x *Execution) WaitsForSlot() bool {
	return x.Place == Delayed && x.Attempt == 1 && !x.SlotAt.IsZero() && x.SlotAt.Equal(x.WakeAt)
}

// CanStandStill reports whether a pause can stop the timers of the execution: it is a workflow, or only waits for its time or for a signal.
// A worker's program cannot be stopped, and people know until when they can answer a question. A workflow that has been ordered to end has
// no timer left: Pause lets its timers run on. A task with a slot of its rate begins in that slot.
func (x *Execution) CanStandStill() bool {
	switch {
	case x.Kind == KindWorkflow:
		return !x.Stage.Terminal()
	case x.State.Cancel != nil:
		return false
	case x.Place == Held:
		return x.Kind == KindSleep || x.Kind == KindWait
	}
	return x.Place == Delayed && x.Attempt == 1 && x.Aside == nil && x.SlotAt.IsZero()
}

type pauseData struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	Timers string    `json:"timers,omitempty"`
}

// timersStop is the value of timers in the event of a pause that stops them.
const timersStop = "stop"

func (x *Execution) PausedAt(now time.Time) bool {
	p := x.State.Pause
	return p != nil && (p.Until.IsZero() || now.Before(p.Until))
}

// over is when a pause ended whose end an event records: at its Until, if that is earlier.
func (p *Pause) over(at time.Time) time.Time {
	if !p.Until.IsZero() && p.Until.Before(at) {
		return p.Until
	}
	return at
}

// PauseOf is the pause in an EvPaused.
func PauseOf(e *Event) (*Pause, error) {
	var data pauseData
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, fmt.Errorf("read what was paused: %w", err)
	}
	return &Pause{At: e.At, Until: data.Until, By: data.By, Reason: data.Reason, Stops: data.Timers == timersStop}, nil
}

// ResumedBy is the author and the reason of an EvResumed; both are empty if the pause expired.
func ResumedBy(e *Event) (by, reason string) {
	var data pauseData
	if json.Unmarshal(e.Data, &data) != nil {
		return "", ""
	}
	return data.By, data.Reason
}

// PausedSince is how long timers were stopped since a moment, by the EvPaused and EvResumed of an execution that is not paused now, in
// order. They begin with the pause that was in force at that moment, if there was one. Other events are ignored.
func PausedSince(events []Event, at time.Time) (paused time.Duration, err error) {
	var p *Pause
	for i := range events {
		e := &events[i]
		if e.Type != EvPaused && e.Type != EvResumed {
			continue
		}
		if p != nil && p.Stops {
			over := p.over(e.At)
			if p.At.Before(at) {
				p.At = at
			}
			paused += max(0, over.Sub(p.At))
		}
		if p = nil; e.Type == EvPaused {
			if p, err = PauseOf(e); err != nil {
				return 0, err
			}
		}
	}
	return paused, nil
}

// Pause makes a workflow start no more tasks, and stops timers if p says so; executions of other kinds can only have
// their timers stopped. A second pause replaces the first. The pause begins now.
func (d *Draft) Pause(p Pause, now time.Time) error {
	if d.Kind == KindWorkflow && d.State.Cancel != nil {
		p.Stops = false // its timeout may be the reason: the end that follows was decided before the pause
	}
	if d.Kind != KindWorkflow && !p.Stops {
		return fmt.Errorf("%w: a %s has no tasks that could wait", ErrIllegalMove, d.Kind)
	}
	if !d.CanStandStill() {
		return fmt.Errorf("%w: a %s that is %s has no timers that could stand still", ErrIllegalMove, d.Kind, d.Place)
	}
	data := pauseData{By: p.By, Reason: p.Reason, Until: p.Until}
	if p.Stops {
		data.Timers = timersStop
	}
	text, err := wirejson.Marshal(data)
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	last := d.EventAt
	if err := d.record(EvPaused, now, text); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	d.shiftTimers(last)
	p.At = d.EventAt
	d.State.Pause = &p
	return nil
}

// Resume lets a paused workflow start tasks again, and restarts stopped timers.
func (d *Draft) Resume(by, reason string, now time.Time) error {
	if d.State.Pause == nil {
		return fmt.Errorf("%w: %s is not paused", ErrIllegalMove, d.ID)
	}
	data, err := wirejson.Marshal(pauseData{By: by, Reason: reason})
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	last := d.EventAt
	if err := d.record(EvResumed, now, data); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	d.shiftTimers(last)
	d.State.Pause = nil
	return nil
}

// shiftTimers adds the length of the pause that the latest event ends to every timer. If a wait began during the pause, at the event before
// (last), only the part since then counts. A pause ends at Until, even if the engine looks later.
func (d *Draft) shiftTimers(last time.Time) {
	p := d.State.Pause
	if p == nil || !p.Stops {
		return
	}
	over := p.over(d.EventAt)
	since := func(began time.Time) time.Duration {
		if began.Before(p.At) {
			began = p.At
		}
		return max(0, over.Sub(began))
	}
	paused := PausedFor{}
	if d.State.PausedFor != nil {
		paused = *d.State.PausedFor
	}
	paused.All += since(p.At)
	switch {
	case d.Place == Held:
		paused.Here += since(d.ClaimedAt)
	case d.WaitsForSlot():
	case d.Place == Delayed && !d.QueuedAt.IsZero(): // when it will be due, like WakeAt
		d.QueuedAt = d.QueuedAt.Add(since(last))
	case !d.QueuedAt.IsZero():
		d.QueuedAt = d.QueuedAt.Add(since(d.QueuedAt))
	}
	if !d.WakeAt.IsZero() && (d.Kind != KindWorkflow || d.Place == Delayed) && !d.WaitsForSlot() {
		d.WakeAt = d.WakeAt.Add(since(last))
	}
	if paused != (PausedFor{}) {
		d.State.PausedFor = &paused
	}
}
