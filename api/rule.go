package api

import (
	"encoding/json"
	"time"
)

// Rule is a rule in force: it starts an action for signals.
type Rule struct {
	Name     string          `json:"name" doc:"Name of the rule"`
	Version  int             `json:"version" doc:"Version in force"`
	On       []string        `json:"on" doc:"Triggers it listens to; github.* means every trigger that begins with github."`
	If       string          `json:"if,omitempty" doc:"Condition on the signal; absent: the rule runs for every signal"`
	Action   string          `json:"action" doc:"Action that it starts"`
	Paused   bool            `json:"paused" doc:"The rule is paused: it starts nothing until it is resumed"`
	Reason   string          `json:"reason,omitempty" doc:"Why the rule is paused"`
	Document json.RawMessage `json:"document,omitempty" doc:"Document in canonical form; left out in lists"`
}

// RuleList lists the rules in force.
type RuleList struct {
	Rules []Rule `json:"rules" doc:"Rules by name"`
}

// Enforcement is the decision of a rule about a signal.
type Enforcement struct {
	Signal    string         `json:"signal" doc:"ID of the signal; begins with sg_"`
	Rule      string         `json:"rule" doc:"Name of the rule"`
	Version   int            `json:"version" doc:"Version of the rule"`
	State     string         `json:"state" doc:"ran: it has started an execution; held: it waits in the window of a debounce or a batch; folded: one that was there stands for it; refused: a bound of the rule kept it from starting one; failed: it could not be evaluated"`
	Execution string         `json:"execution,omitempty" doc:"Execution that was started for the signal, or covers it"`
	At        time.Time      `json:"at" doc:"When the rule was applied"`
	Reason    *EnforceReason `json:"reason,omitempty" doc:"Why nothing was started"`
}

// EnforceReason says why a rule did not start anything.
type EnforceReason struct {
	Code    string `json:"code" doc:"if, input, action, loop, too_deep or storm"`
	Message string `json:"message" doc:"Message for people"`
	Path    string `json:"path,omitempty" doc:"Place in the rule's document"`
}

// EnforcementPage is a page of enforcements, newest signals first.
type EnforcementPage struct {
	Enforcements []Enforcement `json:"enforcements" doc:"Newest signals first"`
	NextCursor   string        `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// SignalWhy explains why rules did or did not start something for a signal.
type SignalWhy struct {
	Signal  Signal    `json:"signal" doc:"Signal in question"`
	Summary string    `json:"summary" doc:"One sentence"`
	Rules   []RuleWhy `json:"rules" doc:"Rules that listen to its trigger, or the one that was asked for"`
}

// RuleWhy explains why a rule did or did not start something for a signal.
type RuleWhy struct {
	Rule        string       `json:"rule" doc:"Name of the rule"`
	Version     int          `json:"version" doc:"Version in force when the signal came; 0 if there was none"`
	Fired       bool         `json:"fired" doc:"Whether an execution was started for the signal or covers it"`
	Summary     string       `json:"summary" doc:"One sentence"`
	Clauses     []RuleClause `json:"clauses" doc:"Parts of the condition; all must be true"`
	Enforcement *Enforcement `json:"enforcement,omitempty" doc:"Decision of the rule on this signal"`
}

// RuleClause is a part of a rule's condition.
type RuleClause struct {
	Text   string      `json:"text" doc:"Clause as written"`
	Holds  bool        `json:"holds" doc:"Whether it is true for the signal"`
	Error  string      `json:"error,omitempty" doc:"Why it could not be evaluated"`
	Values []RuleValue `json:"values,omitempty" doc:"Values that it compares"`
}

// RuleValue is an expression in a rule's condition and its value.
type RuleValue struct {
	Text  string          `json:"text" doc:"Expression"`
	Value json.RawMessage `json:"value" doc:"Value of the expression"`
}

// RuleState is the state of a rule.
type RuleState struct {
	Rule    Rule     `json:"rule" doc:"Rule in question"`
	Summary string   `json:"summary" doc:"One sentence"`
	Facts   []string `json:"facts" doc:"What happened to the latest signals for the rule"`
	Unblock []Advice `json:"unblock" doc:"Actions that would change that"`
}

// RulesTest asks what rules would have decided about past signals.
type RulesTest struct {
	Document string    `json:"document" doc:"Rules, as YAML or JSON"`
	Since    time.Time `json:"since,omitzero" doc:"Use signals accepted at or after this time; at most the latest 10,000"`
}

// RulesTested is the answer to a RulesTest.
type RulesTested struct {
	Rules []RulePast `json:"rules" doc:"One result per rule in the document"`
}

// RuleReplay applies a rule to past signals for which it has no enforcement.
type RuleReplay struct {
	Since  time.Time `json:"since,omitzero" doc:"Use signals accepted at or after this time; at most the latest 10,000"`
	DryRun bool      `json:"dry_run,omitempty" doc:"Report what would be started, but start nothing"`
}

// RulePast summarizes what a rule decided, or would decide, about past signals.
type RulePast struct {
	Rule     string       `json:"rule" doc:"Name of the rule"`
	Signals  int          `json:"signals" doc:"Signals of the triggers it listens to"`
	Ran      int          `json:"ran" doc:"Signals for which an execution was started, or would be"`
	Held     int          `json:"held,omitempty" doc:"Signals held so that one execution covers several"`
	Runs     int          `json:"runs,omitempty" doc:"Tests only: executions that would cover the held signals, or those of a rule with once"`
	Refused  int          `json:"refused" doc:"Signals refused by a limit of the rule"`
	Failed   int          `json:"failed" doc:"Signals for which the rule could not be evaluated"`
	Enforced int          `json:"enforced" doc:"Signals that the rule had already processed"`
	Unlike   int          `json:"unlike" doc:"Signals for which the version in force decides differently"`
	More     bool         `json:"more,omitempty" doc:"Older signals exist that were not considered"`
	Samples  []PastSample `json:"samples" doc:"Examples"`
}

// PastSample is the decision of a rule about one past signal.
type PastSample struct {
	Signal string         `json:"signal" doc:"ID of the signal; begins with sg_"`
	State  string         `json:"state,omitempty" doc:"Decision; absent: the rule does not react to the signal"`
	Was    string         `json:"was,omitempty" doc:"Decision of the version in force; absent: it does not react"`
	Unlike bool           `json:"unlike,omitempty" doc:"The version in force decides differently"`
	Reason *EnforceReason `json:"reason,omitempty" doc:"Why nothing is started"`
}
