package api

import (
	"encoding/json"
	"time"
)

// Rule is a rule that is in force: it runs an action for signals.
type Rule struct {
	Name    string   `json:"name" doc:"Of the rule"`
	Version int      `json:"version" doc:"That is in force"`
	On      []string `json:"on" doc:"The triggers that it listens to; github.* is all below github"`
	If      string   `json:"if,omitempty" doc:"What must hold of a signal; absent: it runs on each"`
	Action  string   `json:"action" doc:"What it runs"`
	Paused  bool     `json:"paused" doc:"It starts nothing until it is resumed"`
	Reason  string   `json:"reason,omitempty" doc:"Why it is paused"`
	// Document is the rule in its canonical form; left out in lists.
	Document json.RawMessage `json:"document,omitempty" doc:"In its canonical form; left out in lists"`
}

// RuleList is the rules in force.
type RuleList struct {
	Rules []Rule `json:"rules" doc:"By name"`
}

// Enforcement is what a rule has made of a signal.
type Enforcement struct {
	Signal    string         `json:"signal" doc:"Begins with sg_"`
	Rule      string         `json:"rule" doc:"Name of the rule"`
	Version   int            `json:"version" doc:"Of the rule"`
	State     string         `json:"state" doc:"ran: it has started an execution; folded: one that was there stands for it; refused: a bound of the rule kept it from starting one; failed: it could not be evaluated"`
	Execution string         `json:"execution,omitempty" doc:"That was started, or stands for it"`
	At        time.Time      `json:"at" doc:"When it was decided"`
	Reason    *EnforceReason `json:"reason,omitempty" doc:"Why nothing was started"`
}

// EnforceReason says why a rule has started nothing.
type EnforceReason struct {
	Code    string `json:"code" doc:"if, input, action, loop or too_deep"`
	Message string `json:"message" doc:"For people"`
	Path    string `json:"path,omitempty" doc:"In the rule's document"`
}

// EnforcementPage is a page of enforcements, those of the latest signals first.
type EnforcementPage struct {
	Enforcements []Enforcement `json:"enforcements" doc:"Those of the latest signals first"`
	NextCursor   string        `json:"next_cursor,omitempty"`
}
