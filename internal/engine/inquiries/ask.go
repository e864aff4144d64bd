package inquiries

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
)

// keyOf is the key of an execution's inquiry. Without a purpose it is made of the execution's task and index.
func keyOf(x *flow.Execution, purpose string) flow.InquiryKey {
	if x.Parent.IsZero() {
		return flow.InquiryKey{Asker: x.ID, Purpose: cmp.Or(purpose, x.Action)}
	}
	return flow.InquiryKey{Asker: x.Parent, Purpose: cmp.Or(purpose, fmt.Sprintf("%s[%d]", x.Task, x.Index))}
}

// loadKeys loads the existing inquiries with some keys into the transaction.
func loadKeys(ctx context.Context, t txn.Tx, keys []flow.InquiryKey) error {
	p := txn.Part[part](t)
	var missing []flow.InquiryKey
	for _, k := range keys {
		if _, known := p.known[k]; !known {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := t.Store().InquiriesOf(ctx, missing)
	if err != nil {
		return fmt.Errorf("look for inquiries: %w", err)
	}
	for _, i := range found {
		p.remember(i)
	}
	return nil
}

// load loads, in one read, the inquiries that drafts which are about to ask may find.
func (q *Inquiries) load(ctx context.Context, t txn.Tx, ds []*flow.Draft) error {
	var keys []flow.InquiryKey
	for _, d := range ds {
		if _, purpose, err := q.questions.Read(d.Payload()); err == nil {
			keys = append(keys, keyOf(d.Execution, purpose))
		}
	}
	return loadKeys(ctx, t, keys)
}

// ask puts the question of an execution to people. The execution ends at once if they answered the question in an earlier attempt of its
// workflow.
func (q *Inquiries) ask(ctx context.Context, t txn.Tx, d *flow.Draft) error {
	question, purpose, err := q.questions.Read(d.Payload())
	if err != nil {
		return txn.FailInvalid(t, d, err)
	}
	key := keyOf(d.Execution, purpose)
	if err := loadKeys(ctx, t, []flow.InquiryKey{key}); err != nil {
		return err
	}
	p := txn.Part[part](t)
	existing := p.known[key]
	if existing != nil && existing.State == flow.InquiryOpen {
		if before := t.Draft(existing.Execution); before != nil && before.Place != flow.Held {
			existing.Withdraw(t.Now()) // the earlier asker has ended in this transaction, which withdraws its question only at its end
		}
	}
	i, err := flow.Ask(existing, q.NewID(), d.ID, key, question, t.Now())
	if err != nil {
		return txn.FailInvalid(t, d, err)
	}
	p.decided(i)
	if i.Answer != nil {
		return q.answered(t, d, i)
	}
	d.WakeAgainAt(i.Wake(t.Now()))
	return record(ctx, t, flow.TriggerInquiryOpened, d, i)
}

// check returns what is wrong with a question before it is stored; paths in it begin with root.
func (q *Inquiries) check(_ context.Context, payload json.RawMessage, root string) error {
	_, _, err := q.questions.Read(payload)
	return requests.ProblemsBeneath(root, err)
}

// answered ends an execution with the answer to its question.
func (q *Inquiries) answered(t txn.Tx, d *flow.Draft, i *flow.Inquiry) error {
	stage, outcome, err := i.Answer.Outcome()
	if err != nil {
		return err
	}
	return d.Finish(stage, outcome, t.Now(), q.Random())
}

// remind sends a reminder of a question, or ends the execution if the question was not answered in time.
func (q *Inquiries) remind(ctx context.Context, t txn.Tx, d *flow.Draft) error {
	i, err := open(ctx, t, d.ID)
	if err != nil {
		return err
	}
	if i.Due.IsZero() || i.Due.After(t.Now()) {
		d.WakeAgainAt(i.Wake(t.Now()))
		return record(ctx, t, flow.TriggerInquiryWaiting, d, i)
	}
	i.Expire(t.Now())
	txn.Part[part](t).decided(i)
	if err := record(ctx, t, flow.TriggerInquiryExpired, d, i); err != nil {
		return err
	}
	if i.Answer != nil {
		return q.answered(t, d, i)
	}
	return d.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeInquiryExpired,
		Message: fmt.Sprintf("nobody answered %s (%s) within %s", i.ID.Text(flow.InquiryPrefix), i.Title, i.Expires)}}, t.Now(), q.Random())
}

// open is the inquiry that an execution waits for.
func open(ctx context.Context, t txn.Tx, id flow.ID) (*flow.Inquiry, error) {
	p := txn.Part[part](t)
	i := p.of[id]
	if i == nil {
		found, err := t.Store().OpenInquiries(ctx, []flow.ID{id})
		if err != nil {
			return nil, fmt.Errorf("look for the inquiry: %w", err)
		}
		for _, f := range found {
			p.remember(f)
			i = f
		}
	}
	if i == nil || i.State != flow.InquiryOpen {
		return nil, fmt.Errorf("%s waits for an answer, and has no open inquiry", id)
	}
	return i, nil
}

// wrote records an execution that waited for an answer and does not wait any more.
func wrote(t txn.Tx, d *flow.Draft) {
	if d.Place == flow.Held {
		return
	}
	if p := txn.Part[part](t); d.Before.Place == flow.Held || p.of[d.ID] != nil {
		p.left = append(p.left, d)
	}
}

// writeDecided withdraws the questions of executions that have ended without an answer, and adds all decisions to the rows to write.
func writeDecided(ctx context.Context, t txn.Tx) error {
	p := txn.MadePart[part](t)
	if p == nil {
		return nil
	}
	var unknown []flow.ID
	for _, d := range p.left {
		if p.of[d.ID] == nil {
			unknown = append(unknown, d.ID)
		}
	}
	if len(unknown) > 0 {
		found, err := t.Store().OpenInquiries(ctx, unknown)
		if err != nil {
			return fmt.Errorf("look for inquiries: %w", err)
		}
		for _, i := range found {
			p.remember(i)
		}
	}
	for _, d := range p.left {
		if i := p.of[d.ID]; i != nil && i.State == flow.InquiryOpen {
			i.Withdraw(t.Now())
			p.decided(i)
		}
	}
	if len(p.changed) == 0 {
		return nil
	}
	rows := t.Rows()
	rows.Inquiries = make([]*flow.Inquiry, 0, len(p.changed))
	for key := range p.changed {
		rows.Inquiries = append(rows.Inquiries, p.known[key])
	}
	return nil
}
