package store

import (
	"context"
	"time"
)

// PauseKind says what is paused.
type PauseKind uint8

// The kinds of things that can be paused. The numbers are stored.
const (
	PausedQueue  PauseKind = 1 + iota // by its name: no execution that waits in it is claimed
	PausedWorker                      // by its name: the worker claims nothing
	PausedAction                      // by its name: no execution of it begins
)

var pauseKinds = [...]string{"", "queue", "worker", "action"}

// String is the kind's name, as the API has it.
func (k PauseKind) String() string { return pauseKinds[k] }

// Pause records that something was paused or resumed, by whom and why. Pauses are only ever added: the latest of a subject
// counts.
type Pause struct {
	Generation int64 // 1, 2, 3 …, over all subjects
	Of         PauseKind
	Name       string
	Paused     bool // false: this record is of its resumption
	At         time.Time
	Until      time.Time // when the pause ends by itself, by the database's clock; zero: only when it is resumed
	By         string
	Reason     string
}

// Holds reports whether the subject is paused at a time.
func (p *Pause) Holds(now time.Time) bool {
	return p.Paused && (p.Until.IsZero() || now.Before(p.Until))
}

// Pausing pauses and resumes.
type Pausing interface {
	// ChangePause calls decide with the latest pause of a subject (zero if there is none) and the database's time, and
	// stores the result; nil changes nothing. The store sets the generation. It returns the subject's latest pause. It runs
	// in a transaction of its own, which waits for the end of every running Update and holds back later ones: sessions that
	// later ones lock have the new generation, and their clock is not before the pause's time.
	ChangePause(ctx context.Context, of PauseKind, name string, decide func(now time.Time, last Pause) *Pause) (Pause, error)
}

// Pauses reads pauses in a transaction.
type Pauses interface {
	// Pauses returns the latest pause of each subject that was not resumed, even if it has run out by now, and the latest
	// generation of all; 0: there is none.
	Pauses(ctx context.Context) ([]Pause, int64, error)
}

// PauseReader reads pauses.
type PauseReader interface {
	Pauses
	// PauseHistory returns up to n pauses below a generation (0: from the latest on), the latest first. A zero kind means
	// all kinds, and a name only that subject.
	PauseHistory(ctx context.Context, of PauseKind, name string, below int64, n int) ([]Pause, error)
}
