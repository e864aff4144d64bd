package flow

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Retry is whether and when a failed attempt is followed by another. The zero value is "one attempt", except that an attempt lost with its
// worker is retried (see lostAttempts).
type Retry struct {
	MaxAttempts int           `json:"max_attempts,omitempty"` // in all; 0 means 1
	Backoff     Backoff       `json:"backoff,omitempty"`
	Delay       time.Duration `json:"delay,omitempty"`     // before the second attempt; 0 means defaultDelay
	MaxDelay    time.Duration `json:"max_delay,omitempty"` // 0 means defaultMaxDelay
	Jitter      float64       `json:"jitter,omitempty"`    // 0..1: share of the delay that is random
	// On lists the error codes (verdicts) that are retried, and "exit:N" for exit codes; CodeConnectionFailed stands for every fault of a
	// connection. Empty: every failure and timeout.
	On []string `json:"on,omitempty"`
}

// Backoff is how the delay grows.
type Backoff string

// The back-offs. The zero value is Exponential.
const (
	Constant    Backoff = "constant"
	Exponential Backoff = "exponential"
)

const (
	defaultDelay    = time.Second
	defaultMaxDelay = 10 * time.Minute
	// lostAttempts is how many attempts an execution without a retry policy gets when its workers are lost: a lost worker
	// may be no fault of the work, but work that kills its worker must end.
	lostAttempts = 3
	// freeLosses bounds HandedBack for attempts that a host ended (see HostTook) or that LoseWithServer takes back: from 10 on they count. A
	// long program on nodes that are preempted every few hours needs many, and a program that brings its nodes down must end. Attempts that a
	// worker gave up when it was shut down, or declined, use up the same 10 (decision 64).
	freeLosses = 10
)

// Attempts is how many attempts the policy allows for a failure with the given code.
func (r Retry) Attempts(code string) int {
	n := max(r.MaxAttempts, 1)
	if code == CodeWorkerLost && r.MaxAttempts == 0 {
		return lostAttempts
	}
	return n
}

// Matches reports whether a failure with this code (and exit code, if there is one) is retried.
func (r Retry) Matches(code string, exit int) bool {
	if len(r.On) == 0 || code == CodeWorkerLost {
		return true
	}
	for _, on := range r.On {
		if on == code || on == CodeConnectionFailed && slices.Contains(connectionCodes, code) {
			return true
		}
		if n, ok := strings.CutPrefix(on, "exit:"); ok && code == CodeNonzeroExit && n == strconv.Itoa(exit) {
			return true
		}
	}
	return false
}

// The reasons, in the details of an error with CodeInfraError, of attempts that do not count, because the program is not at fault. The
// causes of package runtime have the same names.
const (
	HostNodeLost     = "node_lost"
	HostNodeShutdown = "node_shutdown"
	HostPreempted    = "preempted"
	HostEvicted      = "evicted"
	HostDeleted      = "deleted"
)

// HostTook is the reason why a host ended an attempt, from the data of its last event or the details of its error; empty: it ended
// otherwise.
func HostTook(code string, data json.RawMessage) string {
	if code != CodeInfraError {
		return ""
	}
	var said struct {
		Reason string `json:"reason"`
	}
	// Details belong to the handler and may have any shape.
	_ = json.Unmarshal(data, &said)
	switch said.Reason {
	case HostNodeLost, HostNodeShutdown, HostPreempted, HostEvicted, HostDeleted:
		return said.Reason
	}
	return ""
}

// Pause is how long to wait before the attempt after the given one (1, 2, …). random is in [0, 1).
func (r Retry) Pause(attempt int, random float64) time.Duration {
	d, most := r.Delay, r.MaxDelay
	d = cmp.Or(d, defaultDelay)
	most = cmp.Or(most, defaultMaxDelay)
	pause := float64(d)
	if r.Backoff != Constant {
		pause *= math.Pow(2, float64(attempt-1))
	}
	pause = min(pause, float64(most))
	return time.Duration(pause * (1 - r.Jitter*random))
}
