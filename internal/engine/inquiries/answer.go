package inquiries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/store"
)

// Reply is an answer to an inquiry, and its author.
type Reply struct {
	By     string
	Groups []string // to which By belongs, each "group:NAME"
	Value  json.RawMessage
	Note   string
	Via    string // "api" or "link"
}

const noteLimit = 4096

// answerLimit bounds the value of an answer, in bytes.
const answerLimit = 256 << 10

func (r *Reply) person() (p flow.Person, err error) {
	var f fault.List
	read := func(path, text string, group bool) string {
		who, err := flow.ReadWho(text)
		switch {
		case err != nil:
			f.Add(path, fault.Short(text), "it is not the name of "+what(group), "write it without spaces and colons")
		case (who[:min(6, len(who))] == "group:") != group:
			f.Add(path, fault.Short(text), "it is not the name of "+what(group), "groups are written group:NAME, people without a prefix")
		}
		return who
	}
	if r.By == "" {
		f.Add("by", "", "is missing", "say who answers")
	} else {
		p.Name = read("by", r.By, false)
	}
	if len(r.Groups) > groupsLimit {
		f.Add("groups", fmt.Sprint(len(r.Groups)), fmt.Sprintf("are more than the %d allowed", groupsLimit), "leave some out")
		return p, &fault.Invalid{Problems: f}
	}
	for i, g := range r.Groups {
		p.Groups = append(p.Groups, read(fmt.Sprintf("groups[%d]", i), g, true))
	}
	f.Text("note", r.Note, noteLimit)
	if len(r.Value) > answerLimit {
		f.Add("answer", "", fmt.Sprintf("has %d bytes, more than the %d allowed", len(r.Value), answerLimit), "shorten it")
	}
	if len(f) > 0 {
		return p, &fault.Invalid{Problems: f}
	}
	return p, nil
}

const groupsLimit = 100

func what(group bool) string {
	if group {
		return "a group"
	}
	return "a person"
}

// answersAtMost is how often an answer is decided again because the question was assigned to others after it was read.
const answersAtMost = 10

var errAskedAnew = errors.New("the question has been asked anew")

// Answer answers an inquiry on behalf of the reply's author: all ways to answer call it. The same answer by the same person again changes
// nothing. A wrong answer is an *Invalid or definition.Problems, and the inquiry stays open; other errors are those of flow.Inquiry.Reply,
// and store.ErrNotFound.
func (q *Inquiries) Answer(ctx context.Context, id flow.ID, r Reply) (*flow.Inquiry, error) {
	p, err := r.person()
	if err != nil {
		return nil, err
	}
	for range answersAtMost {
		i, err := q.Store.Inquiry(ctx, id)
		if err != nil {
			return nil, err
		}
		a := flow.Answer{AnswerOutput: flow.AnswerOutput{By: p.Name, Note: r.Note}, Via: r.Via}
		var misfit error
		if a.Value, misfit = q.questions.Answer(&i.Question, r.Value, "answer"); misfit == nil {
			var accepted bool
			accepted, misfit = q.questions.Accepts(&i.Question, a.Value)
			a.Declined = !accepted
		}
		before := *i
		changed, err := before.Reply(a, p, misfit == nil && sameAnswer(i, a.Value))
		switch {
		case err != nil:
			return i, err
		case misfit != nil:
			return i, misfits(misfit)
		case !changed:
			return i, nil
		}
		i, err = q.answer(ctx, i, a, p)
		if !errors.Is(err, errAskedAnew) {
			return i, err
		}
	}
	return nil, fmt.Errorf("answer %s: %w", id.Text(flow.InquiryPrefix), store.ErrUnavailable)
}

// misfits describes why an answer does not fit its question.
func misfits(err error) error {
	if e, ok := errors.AsType[*definition.EvalError](err); ok {
		return fault.New("answer", "", "the question cannot be decided with it: "+e.Error(), "give the values that accept looks at")
	}
	return err
}

func sameAnswer(i *flow.Inquiry, value json.RawMessage) bool {
	return i.Answer != nil && jsonvalue.Same(i.Answer.Value, value)
}

// answer decides about an answer that fits the question at the time it was read.
func (q *Inquiries) answer(ctx context.Context, read *flow.Inquiry, a flow.Answer, p flow.Person) (*flow.Inquiry, error) {
	type verdict struct {
		inquiry flow.Inquiry
		err     error
	}
	v, err := txn.In(ctx, q.Decide, []flow.ID{read.Execution}, func(ctx context.Context, t txn.Tx) (v verdict, err error) {
		if err := loadKeys(ctx, t, []flow.InquiryKey{read.InquiryKey}); err != nil {
			return v, err
		}
		decided := txn.Part[part](t)
		i := decided.known[read.InquiryKey]
		switch {
		case i == nil:
			return verdict{err: fmt.Errorf("inquiry %s: %w", read.ID.Text(flow.InquiryPrefix), store.ErrNotFound)}, nil
		case i.Execution != read.Execution, !i.Same(&read.Question):
			return verdict{err: errAskedAnew}, nil
		}
		d := t.Draft(i.Execution)
		if i.State == flow.InquiryOpen && (d == nil || d.Place != flow.Held) {
			return verdict{*i, fmt.Errorf("%w: its execution has ended", flow.ErrClosed)}, nil
		}
		a.At = t.Now()
		changed, refusal := i.Reply(a, p, sameAnswer(i, a.Value))
		if refusal != nil || !changed {
			return verdict{*i, refusal}, nil
		}
		decided.decided(i)
		t.Failpoint(failpoint.AnswerKept)
		if err := record(ctx, t, flow.TriggerInquiryAnswered, d, i); err != nil {
			return v, err
		}
		if err := q.answered(t, d, i); err != nil {
			return v, err
		}
		t.Changed(d)
		return verdict{inquiry: *i}, nil
	})
	if err != nil {
		return nil, err
	}
	return &v.inquiry, v.err
}
