package definition

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/wirejson"
)

// Trigger describes the signals with a name. Signals with other names can be emitted as well, but only signals of a declared trigger can be
// waited for.
type Trigger struct {
	// Data is the schema of a signal's data; nil accepts anything.
	Data *Schema
	// Key and Subject are evaluated for a signal without them. If one is nil, the signal has none.
	Key, Subject *Template
	// Keep is how long its signals are kept; 0: as long as signal_retention says.
	Keep time.Duration
	// Waits means that workflows may wait for the signals.
	Waits bool
}

var triggerFields = []string{"kind", "name", "description", "data", "key", "subject", "keep", "waits"}

func (b *builder) triggerDocument(v *value, d *Definition) {
	if flow.OwnTrigger(d.Name) {
		b.fail(v.get("name"), "name", "choose another; rules may name it in `on` as it is", "%q is a trigger that Pawl emits itself", d.Name)
	}
	t := &Trigger{Keep: b.duration(v.get("keep"), "keep", false), Waits: b.boolean(v.get("waits"), "waits")}
	if s := v.get("data"); s != nil {
		t.Data = b.schema(s, "data")
	}
	if k := v.get("key"); k != nil {
		t.Key = b.template(k, "key", scopeSignal, noTask)
	}
	if s := v.get("subject"); s != nil {
		t.Subject = b.template(s, "subject", scopeSignal, noTask)
	}
	d.Trigger = t
	b.sum(v, d)
}

// ValidateData checks the data of a signal against the trigger's schema and fills in defaults. The error is of type Problems; the
// paths in it start with "data".
func (t *Trigger) ValidateData(data json.RawMessage) (json.RawMessage, error) {
	if t.Data == nil {
		return data, nil
	}
	return t.Data.validate(data, "data", nil)
}

// signalValue is the variable `signal` in expressions.
type signalValue struct {
	ID      string            `json:"id"`
	Trigger string            `json:"trigger"`
	Key     string            `json:"key"`
	Subject string            `json:"subject"`
	Source  string            `json:"source"`
	At      time.Time         `json:"at"`
	Headers map[string]string `json:"headers"`
	Data    json.RawMessage   `json:"data"`
}

// SignalVars returns the variables for expressions of rules and triggers.
func SignalVars(s *flow.Signal) (*Vars, error) {
	raw, err := wirejson.Marshal(describeSignal(s))
	if err != nil {
		return nil, fmt.Errorf("describe signal %s: %w", s.ID.Text(flow.SignalPrefix), err)
	}
	return &Vars{Signal: raw, Success: true}, nil
}

// SignalsVars returns the variables for expressions of a rule that gathers signals: `signals` has all of them, in order.
func SignalsVars(all []flow.Signal) (*Vars, error) {
	values := make([]signalValue, len(all))
	for i := range all {
		values[i] = describeSignal(&all[i])
	}
	raw, err := wirejson.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("describe %d signals: %w", len(all), err)
	}
	return &Vars{Signals: raw, Success: true}, nil
}

func describeSignal(s *flow.Signal) signalValue {
	v := signalValue{ID: s.ID.Text(flow.SignalPrefix), Trigger: s.Trigger, Key: s.Key, Subject: s.Subject, Source: s.Source, At: s.At, Headers: s.Headers, Data: s.Data}
	if v.Headers == nil {
		v.Headers = map[string]string{}
	}
	return v
}
