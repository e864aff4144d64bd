package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/wirejson"
)

// settle decides what follows a terminal event that was just recorded: the next attempt, or the end, at that event's time.
func (d *Draft) settle(o Outcome, now time.Time, random float64) {
	if d.takenByHost(o.Error, now) {
		if err := d.reopen(o.Error.Code, now, declined.Pause(d.HandedBack+1, 0)); err == nil {
			d.HandedBack++
			return
		}
	}
	if (d.Stage == Failed || d.Stage == TimedOut) && d.retries(o.Error, now) {
		if err := d.reopen(o.Error.Code, now, max(d.Retry.Pause(d.Spent(), random), askedPause(o.Error))); err == nil {
			return
		}
	}
	d.Place, d.Ticket, d.Owner = Finished, 0, ID{}
	d.WakeAt, d.GapSince, d.State.Cancel, d.Aside, d.State.Pause = time.Time{}, time.Time{}, nil, nil, nil
	d.FinishedAt, d.EventAt = d.EventAt, time.Time{}
	d.Outcome = &o
	d.dropInbox()
}

// takenByHost reports whether another attempt follows because a host ended the last one. It reads the reason from the recorded event,
// because only the last attempt's outcome is kept and pawl replay must come to the same decision.
func (d *Draft) takenByHost(e *Error, now time.Time) bool {
	if e == nil || d.Stage != Failed || d.HandedBack >= freeLosses || HostTook(e.Code, d.Events[len(d.Events)-1].Data) == "" {
		return false
	}
	return !d.EndsForGood() && !d.pastTotal(now)
}

// pastTotal reports whether total_timeout has passed.
func (d *Draft) pastTotal(now time.Time) bool {
	t := d.TotalDeadline()
	return !t.IsZero() && !now.Before(t)
}

// retries reports whether the retry policy allows another attempt after an error.
func (d *Draft) retries(e *Error, now time.Time) bool {
	if e == nil || d.EndsForGood() || d.Spent() >= d.Retry.Attempts(e.Code) || d.pastTotal(now) {
		return false
	}
	switch e.Code {
	case CodeQueueTimeout, CodeTotalTimeout, CodeWorkerLost, CodeInvalidInput, CodeGone, CodeDeclined:
		return false
	}
	var details struct {
		ExitCode int `json:"exit_code"`
	}
	if len(e.Details) > 0 {
		// Details belong to the handler; without an exit code in them, "exit:N" does not match.
		_ = json.Unmarshal(e.Details, &details)
	}
	return d.Retry.Matches(e.Code, details.ExitCode)
}

// MostAskedPause bounds the pause that the other side of a call may ask for.
const MostAskedPause = 24 * time.Hour

// askedPause is the pause that the other side of a call has asked for: "retry_in", in seconds, in the details.
func askedPause(e *Error) time.Duration {
	var details struct {
		RetryIn float64 `json:"retry_in"`
	}
	if len(e.Details) == 0 || json.Unmarshal(e.Details, &details) != nil || !(details.RetryIn > 0) {
		return 0
	}
	return time.Duration(min(details.RetryIn, MostAskedPause.Seconds()) * float64(time.Second))
}

// reopen opens the next attempt. Its key's slot is free while it waits.
func (d *Draft) reopen(after string, now time.Time, pause time.Duration) error {
	until := d.moment(now).Add(pause)
	data, err := wirejson.Marshal(struct {
		After     string    `json:"after"`
		NotBefore time.Time `json:"not_before"`
	}{after, until})
	if err != nil {
		return fmt.Errorf("open the next attempt: %w", err)
	}
	if err := d.record(EvRequested, now, data); err != nil {
		return fmt.Errorf("open the next attempt: %w", err)
	}
	d.Ticket, d.Owner, d.ClaimedAt, d.GapSince, d.State.Cancel, d.Aside = 0, ID{}, time.Time{}, time.Time{}, nil, nil
	if s := d.State.PausedFor; s != nil {
		d.State.PausedFor = &PausedFor{All: s.All}
	}
	d.delay(until)
	d.dropInbox()
	return nil
}

// dropInbox drops the events that wait for a missing one: an ended attempt takes no more.
func (d *Draft) dropInbox() {
	if d.Before.Inbox > 0 {
		d.InboxBelow = allInbox
	}
	d.InboxAdd, d.Inbox = nil, 0
}
