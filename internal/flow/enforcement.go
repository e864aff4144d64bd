package flow

import (
	"slices"
	"time"
)

// Enforcement is the result of a rule for a signal. There is one of each rule and signal.
type Enforcement struct {
	Signal    ID
	Number    int64 // of the signal
	Rule      string
	Version   int // of the rule
	State     EnforcementState
	Execution ID     // that it has started, or into which it was folded
	Window    string // key of the window in which the signal is, or was, buffered; only read in the state EnforcementBuffered
	At        time.Time
	Reason    Reason // why nothing was started; zero if something was
}

// Reason is why a rule has started nothing.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Path    string `json:"path,omitempty"` // in the rule's document
}

const (
	ReasonIf             = "if"       // the condition cannot be evaluated
	ReasonInput          = "input"    // the input, a key or a label cannot be evaluated
	ReasonAction         = "action"   // the action refuses its input, or does not exist
	ReasonLoop           = "loop"     // the rule has led to the signal itself
	ReasonCircuitBreaker = "storm"    // it has run more often than it allows, and was paused
	ReasonTooDeep        = "too_deep" // more rules have led to one another than the rule allows
)

type EnforcementState uint8

// The states of an enforcement. Stores keep the numbers.
const (
	EnforcementRan      EnforcementState = 1 // it has started an execution
	EnforcementBuffered EnforcementState = 2 // it waits in a window
	EnforcementFolded   EnforcementState = 3 // an existing execution represents it
	EnforcementRefused  EnforcementState = 4 // a bound of the rule prevented a start
	EnforcementFailed   EnforcementState = 5 // the rule could not be evaluated
)

var enforcementStates = []string{"ran", "held", "folded", "refused", "failed"}

func EnforcementStates() []string { return slices.Clone(enforcementStates) }

func (s EnforcementState) String() string {
	if s < EnforcementRan || s > EnforcementFailed {
		return ""
	}
	return enforcementStates[s-EnforcementRan]
}

// EnforcementStateOf is the state with a name; zero: unknown.
func EnforcementStateOf(name string) EnforcementState {
	for i, s := range enforcementStates {
		if s == name {
			return EnforcementRan + EnforcementState(i)
		}
	}
	return 0
}
