package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Signal says that something has happened. It is written once; only its State changes.
type Signal struct {
	ID ID
	// Number orders signals: those of one server in the order in which they were accepted. It is drawn by the store.
	Number  int64
	Trigger string // what kind of thing has happened: "alert.fired"
	// Key tells a signal that is sent again from another one: of those with a trigger and a key there is one. "": each is another.
	Key     string
	Subject string // what it is about, such as a host or an order; "": no wait looks for it
	Source  string // who said it: SourceAPI, or "webhook:NAME"
	At      time.Time
	State   SignalState
	Hash    [32]byte // of what was sent: the same key with another hash is a mistake of the sender
	// Body is the hash of the signed part of a request whose id is not signed; zero: there is none. A signal whose Body
	// came before is Replayed.
	Body [32]byte
	Data json.RawMessage
	SignalDetail
	// Damage says why the row cannot be decoded, and SignalDetail is empty then; "": it can.
	Damage string
}

// SignalDetail are the fields of a signal by which no signal is looked up. Stores keep them as JSON.
type SignalDetail struct {
	Headers map[string]string `json:"headers,omitempty"` // of the request that brought it
	Cause   ID                `json:"cause,omitzero"`    // the execution that it follows from
	// Rules are those that have led to it, the first one first: each has run the execution whose end or emission led to the next.
	Rules []string `json:"rules,omitempty"`
	// Generation is that of the rules that were asked about it.
	Generation int64 `json:"generation,omitempty"`
	// Replayed says that the same content came before under another id: it is kept, and no rule and no wait is asked about it.
	Replayed bool `json:"replayed,omitempty"`
}

// SignalState is whether the rules have been asked about a signal.
type SignalState uint8

// The states of a signal. Stores keep the numbers.
const (
	SignalNew     SignalState = 1 // kept, and no rule has been asked
	SignalMatched SignalState = 2
)

// String names the state.
func (s SignalState) String() string {
	//exhaustive:enforce
	switch s {
	case SignalNew:
		return "new"
	case SignalMatched:
		return "matched"
	}
	return ""
}

// SourceKinds are the kinds of sources. A source is one, or one with the name of a document behind it: "webhook:github".
var SourceKinds = []string{SourceAPI, "webhook", "schedule", SourceExecution, "inquiry", "rule"}

// Sources of signals that are no name of a document.
const (
	SourceAPI       = "api"
	SourceExecution = "execution"
)

// Triggers that Pawl itself emits; nothing else may.
const (
	TriggerEnded           = "execution.ended"
	TriggerInquiryOpened   = "inquiry.opened"
	TriggerInquiryWaiting  = "inquiry.waiting" // a reminder
	TriggerInquiryAnswered = "inquiry.answered"
	TriggerInquiryExpired  = "inquiry.expired"
)

// TriggerTick is what the trigger of a schedule's ticks begins with; the schedule's name follows.
const TriggerTick = "schedule."

// TriggerPaused is emitted when a rule is paused, by a person or by a storm.
const TriggerPaused = "rule.paused"

// ownTriggers are what the names of Pawl's own triggers begin with.
var ownTriggers = []string{"execution.", "schedule.", "inquiry.", "rule."}

// OwnTrigger reports whether a trigger is one that Pawl alone emits.
func OwnTrigger(name string) bool {
	for _, prefix := range ownTriggers {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// TriggerForm says how the name of a trigger is written.
const TriggerForm = "use lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, as in alert.fired"

// triggerLimit is how many bytes the name of a trigger may have.
const triggerLimit = 200

// BadTrigger says what is wrong with the name of a trigger; "" when nothing is.
func BadTrigger(name string) string {
	switch {
	case name == "":
		return "is missing"
	case len(name) > triggerLimit:
		return fmt.Sprintf("has %d bytes, more than the %d allowed", len(name), triggerLimit)
	}
	if strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return "has an empty part at a dot"
	}
	for i, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		case i > 0 && (r == '.' || r == '_' || r == '-'):
		default:
			return fmt.Sprintf("has %q", r)
		}
	}
	return ""
}
