package flow

import (
	"encoding/json"
	"fmt"
	"time"
)

// Pause keeps a workflow's execution from starting tasks, until it is resumed or its time is over. Tasks that have begun go on.
type Pause struct {
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"` // zero: until it is resumed
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// pauseData is what the events of a pause say.
type pauseData struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// PausedAt reports whether the execution is paused at a moment.
func (x *Execution) PausedAt(now time.Time) bool {
	p := x.State.Pause
	return p != nil && (p.Until.IsZero() || now.Before(p.Until))
}

// PauseOf is the pause that an EvPaused says.
func PauseOf(e *Event) (*Pause, error) {
	var data pauseData
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, fmt.Errorf("read what was paused: %w", err)
	}
	return &Pause{At: e.At, Until: data.Until, By: data.By, Reason: data.Reason}, nil
}

// ResumedBy is who has resumed something, and why, as an EvResumed says; both are empty where the pause's time was over.
func ResumedBy(e *Event) (by, reason string) {
	var data pauseData
	if json.Unmarshal(e.Data, &data) != nil {
		return "", ""
	}
	return data.By, data.Reason
}

// Pause lets a workflow start no more tasks. A second pause replaces the first.
func (d *Draft) Pause(until time.Time, by, reason string, now time.Time) error {
	if d.Kind != KindWorkflow {
		return fmt.Errorf("%w: a %s has no tasks that could wait", ErrIllegalMove, d.Kind)
	}
	data, err := json.Marshal(pauseData{By: by, Reason: reason, Until: until})
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	if err := d.record(EvPaused, now, data); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	d.State.Pause = &Pause{At: d.EventAt, Until: until, By: by, Reason: reason}
	return nil
}

// Resume lets a workflow that is paused start tasks again.
func (d *Draft) Resume(by, reason string, now time.Time) error {
	if d.State.Pause == nil {
		return fmt.Errorf("%w: %s is not paused", ErrIllegalMove, d.ID)
	}
	data, err := json.Marshal(pauseData{By: by, Reason: reason})
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if err := d.record(EvResumed, now, data); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	d.State.Pause = nil
	return nil
}
