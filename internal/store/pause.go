package store

import (
	"context"
	"time"
)

// PauseKind is the kind of a paused object.
type PauseKind uint8

// The kinds of objects that can be paused. The numbers are stored.
const (
	PausedQueue  PauseKind = 1 + iota // by its name: no execution in it is claimed
	PausedWorker                      // by its name: the worker claims nothing
	PausedAction                      // by its name: no execution of it begins
)

var pauseKinds = [...]string{"", "queue", "worker", "action"}

// String returns the kind's name in the API.
func (k PauseKind) String() string { return pauseKinds[k] }

// Pause records that something was paused or resumed, by whom and why. Pauses are only added, never changed: the latest one of a subject
// counts.
type Pause struct {
	Generation int64 // 1, 2, 3 …, across all subjects
	Of         PauseKind
	Name       string
	Paused     bool // false: this record is a resume
	At         time.Time
	Until      time.Time // when the pause ends by itself, by the database's clock; zero: only by a resume
	By         string
	Reason     string
}

// Holds reports whether the subject is paused at a time.
func (p *Pause) Holds(now time.Time) bool {
	return p.Paused && (p.Until.IsZero() || now.Before(p.Until))
}

// Pausing pauses and resumes.
type Pausing interface {
	// ChangePause calls decide with the latest pause of a subject (zero if there is none) and the database's time, and stores the result; nil
	// changes nothing. The store sets the generation. It returns the subject's latest pause. It runs in its own transaction, which waits for
	// the end of every running Update and blocks later ones: sessions that later ones lock have the new generation, and their clock is not
	// before the pause's time.
	ChangePause(ctx context.Context, of PauseKind, name string, decide func(now time.Time, last Pause) *Pause) (Pause, error)
}

// Pauses reads pauses in a transaction.
type Pauses interface {
	// Pauses returns the latest pause of each subject that was not resumed, even if it has expired, and the latest generation of all; 0: there
	// is none.
	Pauses(ctx context.Context) ([]Pause, int64, error)
}

// PauseReader reads pauses.
type PauseReader interface {
	Pauses
	// PauseHistory returns up to n pauses below a generation (0: all), newest first. A zero kind means all kinds; with a name, only that
	// subject.
	PauseHistory(ctx context.Context, of PauseKind, name string, below int64, n int) ([]Pause, error)
}
