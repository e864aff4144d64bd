package store

import (
	"context"
	"time"
)

// PauseKind says what is paused.
type PauseKind uint8

// What can be paused. The numbers are stored.
const (
	PausedQueue  PauseKind = 1 + iota // by its name: nothing that waits in it is claimed
	PausedWorker                      // by its name: it claims nothing
	PausedAction                      // by its name: no execution of it begins
)

var pauseKinds = [...]string{"", "queue", "worker", "action"}

// String is the kind's name, as the API has it.
func (k PauseKind) String() string { return pauseKinds[k] }

// Pause says that something was paused or resumed, by whom and why. Pauses are only ever added: the latest of a subject counts.
type Pause struct {
	Generation int64 // 1, 2, 3 …, over all subjects
	Of         PauseKind
	Name       string
	Paused     bool // false: it was resumed
	At         time.Time
	Until      time.Time // when it ends by itself, by the database's clock; zero: when it is resumed
	By         string
	Reason     string
}

// Holds reports whether what the pause is about is paused at a moment.
func (p *Pause) Holds(now time.Time) bool {
	return p.Paused && (p.Until.IsZero() || now.Before(p.Until))
}

// Pausing pauses and resumes.
type Pausing interface {
	// ChangePause stores what decide makes of the latest pause of a subject (zero: there is none) at the database's time; the
	// generation is given by the store, and nil changes nothing. It returns the subject's latest pause. It has a transaction of its own, before
	// which every Update that has begun ends, and behind which every other one begins: the sessions that these lock have the new
	// generation, and their clock is not before the pause's.
	ChangePause(ctx context.Context, of PauseKind, name string, decide func(now time.Time, last Pause) *Pause) (Pause, error)
}

// Pauses reads pauses in a transaction.
type Pauses interface {
	// Pauses returns the latest pause of each subject that has not been resumed, also of one that is over by now, and the latest
	// generation of all; 0: there is none.
	Pauses(ctx context.Context) ([]Pause, int64, error)
}

// PauseReader answers readers about pauses.
type PauseReader interface {
	Pauses
	// PauseHistory returns up to n pauses below a generation (0: the latest), those that came last first; of a zero kind all, and
	// with a name only those of that subject.
	PauseHistory(ctx context.Context, of PauseKind, name string, below int64, n int) ([]Pause, error)
}
