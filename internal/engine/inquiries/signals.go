package inquiries

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
)

// inquiryData is the data of the signals about an inquiry.
type inquiryData struct {
	Inquiry   string     `json:"inquiry"`
	Execution flow.ID    `json:"execution"`
	Workflow  flow.ID    `json:"workflow,omitzero"`
	Purpose   string     `json:"purpose"`
	Title     string     `json:"title"`
	Text      string     `json:"text"`
	Assignees []string   `json:"assignees"`
	Exclude   []string   `json:"exclude"`
	AskedAt   time.Time  `json:"asked_at"`
	Due       *time.Time `json:"due"`
	Reminder  int        `json:"reminder"` // how many reminders were sent
	// Answer is the answer of an answered inquiry, or the default of an expired one.
	Answer   *flow.AnswerOutput `json:"answer"`
	Declined bool               `json:"declined"`
}

// record keeps a signal about an inquiry, if a rule listens to it, in the transaction that changes the inquiry. Notifications and reminders
// are rules on these signals.
func record(ctx context.Context, t txn.Tx, trigger string, d *flow.Draft, i *flow.Inquiry) error {
	generation, ok := t.Listens(trigger)
	if !ok {
		return nil
	}
	id := i.ID.Text(flow.InquiryPrefix)
	data := inquiryData{Inquiry: id, Execution: d.ID, Workflow: d.Parent, Purpose: i.Purpose, Title: i.Title, Text: i.Text, Assignees: append([]string{}, i.Assignees...),
		Exclude: append([]string{}, i.Exclude...), AskedAt: i.AskedAt, Reminder: i.Reminded(t.Now())}
	if !i.Due.IsZero() {
		data.Due = &i.Due
	}
	if i.Answer != nil {
		data.Answer, data.Declined = &i.Answer.AnswerOutput, i.Answer.Declined
	}
	rules, err := rulesBehind(ctx, t, d)
	if err != nil {
		return err
	}
	return t.Record(ctx, flow.Signal{Trigger: trigger, Key: fmt.Sprintf("%s/%d/%d", id, i.AskedAt.UnixMicro(), data.Reminder), Subject: id, Source: flow.SourceExecution,
		SignalDetail: flow.SignalDetail{Cause: d.ID, Rules: rules}}, generation, data)
}

// rulesBehind are the rules that have led to an execution: its own, or those of the nearest workflow above it that has any.
func rulesBehind(ctx context.Context, t txn.Tx, d *flow.Draft) ([]string, error) {
	for d != nil && len(d.Rules) == 0 && !d.Parent.IsZero() {
		above := d.Parent
		if err := t.Load(ctx, []flow.ID{above}); err != nil {
			return nil, err
		}
		d = t.Draft(above)
	}
	if d == nil {
		return nil, nil
	}
	return d.Rules, nil
}
