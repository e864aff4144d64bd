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
	State     string         `json:"state" doc:"ran: it has started an execution; held: it waits in the window of a debounce or a batch; folded: one that was there stands for it; refused: a bound of the rule kept it from starting one; failed: it could not be evaluated"`
	Execution string         `json:"execution,omitempty" doc:"That was started, or stands for it"`
	At        time.Time      `json:"at" doc:"When it was decided"`
	Reason    *EnforceReason `json:"reason,omitempty" doc:"Why nothing was started"`
}

// EnforceReason says why a rule has started nothing.
type EnforceReason struct {
	Code    string `json:"code" doc:"if, input, action, loop, too_deep or storm"`
	Message string `json:"message" doc:"For people"`
	Path    string `json:"path,omitempty" doc:"In the rule's document"`
}

// EnforcementPage is a page of enforcements, those of the latest signals first.
type EnforcementPage struct {
	Enforcements []Enforcement `json:"enforcements" doc:"Those of the latest signals first"`
	NextCursor   string        `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// SignalWhy says of rules why they have started something for a signal, or why not.
type SignalWhy struct {
	Signal  Signal    `json:"signal" doc:"That is asked about"`
	Summary string    `json:"summary" doc:"One sentence"`
	Rules   []RuleWhy `json:"rules" doc:"Those that listen to its trigger, or the one asked for"`
}

// RuleWhy says why a rule has started something for a signal, or why not.
type RuleWhy struct {
	Rule        string       `json:"rule" doc:"Name of the rule"`
	Version     int          `json:"version" doc:"That was in force when the signal came; 0: none was"`
	Fired       bool         `json:"fired" doc:"An execution stands for the signal"`
	Summary     string       `json:"summary" doc:"One sentence"`
	Clauses     []RuleClause `json:"clauses" doc:"The parts of its condition, which holds when all do"`
	Enforcement *Enforcement `json:"enforcement,omitempty" doc:"What it has made of the signal"`
}

// RuleClause is a part of a rule's condition.
type RuleClause struct {
	Text   string      `json:"text" doc:"As it is written"`
	Holds  bool        `json:"holds" doc:"Of the signal"`
	Error  string      `json:"error,omitempty" doc:"Why that cannot be said"`
	Values []RuleValue `json:"values,omitempty" doc:"What it compares"`
}

// RuleValue is an expression in a rule's condition and its value.
type RuleValue struct {
	Text  string          `json:"text" doc:"The expression"`
	Value json.RawMessage `json:"value" doc:"Its value"`
}

// RuleState says how a rule stands.
type RuleState struct {
	Rule    Rule     `json:"rule" doc:"That is asked about"`
	Summary string   `json:"summary" doc:"One sentence"`
	Facts   []string `json:"facts" doc:"What became of the latest signals that it listens to"`
	Unblock []Advice `json:"unblock" doc:"What would change that"`
}

// RulesTest asks what rules would have made of the signals of the past.
type RulesTest struct {
	Document string    `json:"document" doc:"The rules, in YAML or JSON"`
	Since    time.Time `json:"since,omitzero" doc:"Signals accepted then or later; at most the latest 10,000"`
}

// RulesTested is what rules would have made of the signals of the past.
type RulesTested struct {
	Rules []RulePast `json:"rules" doc:"One for each rule of the document"`
}

// RuleReplay asks a rule about signals of the past of which it has no enforcement.
type RuleReplay struct {
	Since  time.Time `json:"since,omitzero" doc:"Signals accepted then or later; at most the latest 10,000"`
	DryRun bool      `json:"dry_run,omitempty" doc:"Start nothing, and say what would be started"`
}

// RulePast is what a rule has made, or would make, of signals of the past.
type RulePast struct {
	Rule     string       `json:"rule" doc:"Name of the rule"`
	Signals  int          `json:"signals" doc:"That it listens to"`
	Ran      int          `json:"ran" doc:"For which it has started something, or would"`
	Held     int          `json:"held,omitempty" doc:"That it holds, or would, so that one execution stands for several"`
	Runs     int          `json:"runs,omitempty" doc:"Of a test: the executions that would stand for those held"`
	Refused  int          `json:"refused" doc:"For which a bound of the rule keeps it from starting something"`
	Failed   int          `json:"failed" doc:"For which it cannot be evaluated"`
	Enforced int          `json:"enforced" doc:"Of which it has an enforcement already"`
	Unlike   int          `json:"unlike" doc:"Of which the version in force makes something else"`
	More     bool         `json:"more,omitempty" doc:"There are older signals, which were not looked at"`
	Samples  []PastSample `json:"samples" doc:"Some of them"`
}

// PastSample is what a rule makes of one signal of the past.
type PastSample struct {
	Signal string         `json:"signal" doc:"Begins with sg_"`
	State  string         `json:"state,omitempty" doc:"Absent: the rule makes nothing of it"`
	Was    string         `json:"was,omitempty" doc:"What the version in force makes of it; absent: nothing"`
	Unlike bool           `json:"unlike,omitempty" doc:"The version in force makes something else of it"`
	Reason *EnforceReason `json:"reason,omitempty" doc:"Why nothing is started"`
}
