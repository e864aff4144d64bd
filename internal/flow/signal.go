package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Signal is one occurrence of an outside event. It is written once; only its State changes.
type Signal struct {
	ID ID
	// Number orders signals: those of one server in the order of their acceptance. The store draws it.
	Number  int64
	Trigger string // the kind of event: "alert.fired"
	// Key identifies repetitions of a signal: there is one signal with a trigger and a key. "": each is another.
	Key     string
	Subject string // what it is about, such as a host or an order; "": no wait looks for it
	Source  string // its origin: SourceAPI, or "webhook:NAME"
	At      time.Time
	State   SignalState
	Hash    [32]byte // of the sent content: the same key with another hash is the sender's mistake
	// Body is the hash of the signed part of a request whose id is not signed; zero: there is none. A signal whose Body
	// came before is Replayed.
	Body [32]byte
	Data json.RawMessage
	SignalDetail
	// Damage is why the row cannot be decoded; then SignalDetail is empty. "": it can.
	Damage string
}

// SignalDetail are the fields of a signal that are not used for look-ups. Stores keep them as JSON.
type SignalDetail struct {
	Headers map[string]string `json:"headers,omitempty"` // of the HTTP request
	Cause   ID                `json:"cause,omitzero"`    // the execution that caused it
	// Rules are the rules that have led to it, in order: each has run the execution whose end or emission led to the next.
	Rules []string `json:"rules,omitempty"`
	// Generation is that of the rules that are evaluated for it.
	Generation int64 `json:"generation,omitempty"`
	// Replayed means that the same content came before under another id: it is kept, but no rule and no wait sees it.
	Replayed bool `json:"replayed,omitempty"`
}

// SignalState is whether the rules have been evaluated for a signal.
type SignalState uint8

// The states of a signal. Stores keep the numbers.
const (
	SignalNew     SignalState = 1 // stored, and no rule has been evaluated
	SignalMatched SignalState = 2
)

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

// SourceKinds are the kinds of sources. A source is one of them, or one with the name of a document: "webhook:github".
var SourceKinds = []string{SourceAPI, "webhook", "schedule", SourceExecution, "inquiry", "rule"}

// Sources of signals without a document's name.
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

// TriggerTick is the prefix of the triggers of schedules' ticks; the schedule's name follows.
const TriggerTick = "schedule."

// TriggerPaused is emitted when a rule is paused, by a person or by a storm.
const TriggerPaused = "rule.paused"

// ownTriggers are the prefixes of Pawl's own triggers.
var ownTriggers = []string{"execution.", "schedule.", "inquiry.", "rule."}

// OwnTrigger reports whether only Pawl emits a trigger.
func OwnTrigger(name string) bool {
	return slices.ContainsFunc(ownTriggers, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// TriggerForm tells users how to write the name of a trigger.
const TriggerForm = "use lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, as in alert.fired"

// triggerLimit is how many bytes the name of a trigger may have.
const triggerLimit = 200

// BadTrigger returns what is wrong with the name of a trigger; "" if nothing is.
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
