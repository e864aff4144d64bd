package server

import (
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

func (c *call) checkSubmission() error {
	var in api.Submission
	if err := c.decode(&in); err != nil {
		return c.answerCheck(flow.Request{}, err)
	}
	return c.answerCheck(c.Engine.CheckSubmission(c.ctx(), submission(&in)))
}

func (c *call) checkEvaluation() error {
	var in api.Evaluation
	if err := c.decode(&in); err != nil {
		return c.answerCheck(flow.Request{}, err)
	}
	sub, err := c.evaluation(&in)
	if err != nil {
		return err
	}
	r, err := c.Engine.CheckSubmission(c.ctx(), sub)
	return c.answerCheck(r, inBody(err))
}

// answerCheck answers with the execution that a submission would become, or with its errors, which are not errors of this request.
func (c *call) answerCheck(r flow.Request, err error) error {
	if err != nil {
		p := problemOf(err)
		if p.Type != api.ProblemInvalid || len(p.Errors) == 0 {
			return err
		}
		return c.json(http.StatusOK, api.SubmissionCheck{Problems: p.Errors})
	}
	queue, _ := flow.NeedsOf(r.Queue)
	return c.json(http.StatusOK, api.SubmissionCheck{Valid: true, Action: r.Action, Version: r.Version, Kind: string(r.Kind), Queue: queue, Key: r.Key})
}
