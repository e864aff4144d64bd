// Package flow holds the nouns of an execution's life and the tables of what may follow what. It is pure: no I/O, no
// clock, no randomness; times, ids and random numbers are arguments.
package flow

import "fmt"

// Stage is the stage of an attempt. Stages only grow within an attempt; the last four are terminal.
type Stage uint8

// The stages in order.
const (
	Requested Stage = 1 + iota
	_               // 2 is unused: stages are stored by their numbers
	Scheduled
	Provisioning
	Running
	Completed
	Failed
	Cancelled
	TimedOut
)

var stageNames = [...]string{"", "requested", "", "scheduled", "provisioning", "running", "completed", "failed", "cancelled", "timed_out"}

func Stages() []Stage {
	return []Stage{Requested, Scheduled, Provisioning, Running, Completed, Failed, Cancelled, TimedOut}
}

// String is the stage's name as users see it.
func (s Stage) String() string {
	if int(s) < len(stageNames) {
		return stageNames[s]
	}
	return fmt.Sprintf("stage(%d)", uint8(s))
}

// Terminal reports whether s is the last stage of its attempt.
func (s Stage) Terminal() bool { return s >= Completed }

// Owned reports whether a worker (or the engine, for executions that it runs itself) holds the attempt.
func (s Stage) Owned() bool { return s == Provisioning || s == Running }

func ParseStage(name string) (Stage, error) {
	for _, s := range Stages() {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%.40q is not a status: one of requested, scheduled, provisioning, running, completed, failed, cancelled, timed_out", name)
}

func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Stage) UnmarshalText(b []byte) error {
	v, err := ParseStage(string(b))
	if err != nil {
		return err
	}
	*s = v
	return nil
}
