package inquiries

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/store"
)

// verifiedAnswers is how many answers, the latest, Verify checks against their forms.
const verifiedAnswers = 10_000

// Verify checks answers against the forms of their questions, and against what the questions accept.
func (q *Inquiries) Verify(ctx context.Context) (broken []store.Violation, err error) {
	f := store.InquiryFilter{State: flow.InquiryAnswered, Limit: 500}
	for n := 0; n < verifiedAnswers; {
		page, err := q.Store.Inquiries(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, i := range page {
			if say := q.misfit(i); say != "" {
				broken = append(broken, store.Violation{Invariant: 44, Execution: i.Execution, Say: fmt.Sprintf("the answer of %s %s", i.ID.Text(flow.InquiryPrefix), say)})
			}
		}
		n, f.Before = n+len(page), page[len(page)-1].ID
	}
	return broken, nil
}

// misfit describes how an answer breaks its question's rules; "" if it does not.
func (q *Inquiries) misfit(i *flow.Inquiry) string {
	filled, err := q.questions.Answer(&i.Question, i.Answer.Value, "answer")
	if err != nil {
		return "does not fit the form: " + err.Error()
	}
	if !jsonvalue.Same(filled, i.Answer.Value) {
		return "lacks defaults of the form"
	}
	accepted, err := q.questions.Accepts(&i.Question, i.Answer.Value)
	if err != nil || accepted == i.Answer.Declined {
		return fmt.Sprintf("is declined: %t, and accepted: %t", i.Answer.Declined, accepted)
	}
	return ""
}
