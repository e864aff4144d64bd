package server

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine/inquiries"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

var inquiryStates = []string{api.InquiryOpen, api.InquiryAnswered, api.InquiryExpired, api.InquiryWithdrawn}

const allInquiries = "all"

func inquiryRoutes() []route {
	const one = "/api/v1/inquiries/{id}"
	typeInquiry := reflect.TypeFor[api.Inquiry]()
	return []route{
		{method: "GET", path: "/api/v1/inquiries", name: "list-inquiries", tag: tagInquiries, summary: "List questions to people, newest first",
			params: []param{
				{name: "state", kind: "string", doc: "State of the question; default open",
					choices: append([]string{allInquiries}, inquiryStates...)},
				{name: "assignee", kind: "string", doc: "Only open questions assigned to this person or group:NAME"},
				paramLimit, paramCursor},
			answers: []answer{ok(reflect.TypeFor[api.InquiryPage](), mediaEvents)}, handle: (*call).inquiries},
		{method: "GET", path: one, name: "get-inquiry", tag: tagInquiries, summary: "Get one question",
			answers: []answer{ok(typeInquiry)}, handle: (*call).inquiry},
		{method: "POST", path: one + "/answer", name: "answer-inquiry", tag: tagInquiries,
			summary: "Answer a question; repeating an answer is safe. 403: not an assignee, 409: closed, 422: does not match the form",
			body:    reflect.TypeFor[api.Reply](), answers: []answer{ok(typeInquiry)}, handle: ofNamed((*call).inquiryID, (*call).answerInquiry)},
		{method: "POST", path: one + "/link", name: "link-inquiry", tag: tagInquiries,
			summary: "Create a link with which one person can answer a question without a token",
			body:    reflect.TypeFor[api.Invitation](), answers: []answer{ok(reflect.TypeFor[api.AnswerLink]())},
			handle: ofNamed((*call).inquiryID, (*call).linkInquiry)},
		{method: "GET", path: answerPath + "{token}", name: "answer-page", tag: tagInquiries,
			summary: "Show the form of a question to the person with the link; changes nothing, needs no token",
			answers: []answer{ok(nil, mediaHTML)}, handle: (*call).answerPage},
		{method: "POST", path: answerPath + "{token}", name: "answer-by-link", tag: tagInquiries,
			summary: "Answer a question with the form of answer-page; needs no token",
			form:    true, answers: []answer{ok(nil, mediaHTML)}, handle: (*call).answerByLink},
	}
}

func renderInquiry(i *flow.Inquiry) api.Inquiry {
	out := api.Inquiry{ID: i.ID.Text(flow.InquiryPrefix), State: i.State.String(), Execution: i.Execution.String(), Purpose: i.Purpose,
		Title: i.Title, Text: i.Text, Form: i.Form, Assignees: i.Assignees, Exclude: i.Exclude, Accept: i.Accept, Default: i.Default,
		AskedAt: i.AskedAt, Due: moment(i.Due), ClosedAt: moment(i.ClosedAt)}
	if i.Asker != i.Execution {
		out.Workflow = i.Asker.String()
	}
	if a := i.Answer; a != nil {
		out.Answer = &api.Answer{Value: a.Value, By: a.By, At: a.At, Note: a.Note, Via: a.Via, Defaulted: a.Defaulted, Declined: a.Declined}
	}
	return out
}

func (c *call) inquiries() error {
	f := store.InquiryFilter{Limit: int(c.number("limit", 100, 1, 1000)), State: flow.InquiryOpen}
	switch state := c.query.Get("state"); state {
	case "":
	case allInquiries:
		f.State = 0
	default:
		s, known := flow.InquiryStateNamed(state)
		if !known {
			c.fault("state", state, "there is no such state", problem.NearestOr(state, append([]string{allInquiries}, inquiryStates...), "one of"))
		}
		f.State = s
	}
	if who := c.query.Get("assignee"); who != "" {
		name, err := flow.ReadWho(who)
		if err != nil {
			c.fault("assignee", who, "it names neither a person nor a group", "write ada or group:release")
		}
		if f.State != flow.InquiryOpen {
			c.fault("assignee", who, "only open inquiries are found by whom they are for", "leave out state, or assignee")
		}
		f.Assignee = name
	}
	if text := c.query.Get("cursor"); text != "" {
		id, err := flow.ParseID(flow.InquiryPrefix, text)
		if err != nil {
			c.noPlace()
		}
		f.Before = id
	}
	if err := c.checked(); err != nil {
		return err
	}
	if c.wantsStream() {
		first := f
		return watchList(c, api.StreamInquiry, func(i *api.Inquiry) string { return i.ID }, func() { f = first }, func() ([]api.Inquiry, error) {
			rows, err := c.Engine.Reader().Inquiries(c.ctx(), f)
			if err != nil {
				return nil, fmt.Errorf("list inquiries: %w", err)
			}
			all := make([]api.Inquiry, len(rows))
			for i := range rows {
				f.Before, all[i] = rows[i].ID, renderInquiry(rows[i])
			}
			return all, nil
		})
	}
	rows, err := c.Engine.Reader().Inquiries(c.ctx(), f)
	if err != nil {
		return fmt.Errorf("list inquiries: %w", err)
	}
	page := api.InquiryPage{Inquiries: []api.Inquiry{}}
	var size store.Page
	for _, i := range rows {
		size.Inquiry(i)
		page.Inquiries = append(page.Inquiries, renderInquiry(i))
	}
	if n := len(rows); n == f.Limit || size.Full() {
		page.NextCursor = rows[n-1].ID.Text(flow.InquiryPrefix)
	}
	return c.json(http.StatusOK, page)
}

func (c *call) inquiryID() (flow.ID, error) {
	return idNamed("inquiry", flow.InquiryPrefix, c.r.PathValue("id"))
}

// renderedInquiry answers with an inquiry, or with the problem for err.
func (c *call) renderedInquiry(i *flow.Inquiry, err error) error {
	if err != nil {
		return missing("inquiry", c.r.PathValue("id"), err)
	}
	return c.json(http.StatusOK, renderInquiry(i))
}

func (c *call) inquiry() error {
	id, err := c.inquiryID()
	if err != nil {
		return err
	}
	return c.renderedInquiry(c.Engine.Reader().Inquiry(c.ctx(), id))
}

func (c *call) answerInquiry(id flow.ID, in *api.Reply) error {
	return c.renderedInquiry(c.Engine.Inquiries().Answer(c.ctx(), id, inquiries.Reply{By: in.By, Groups: in.Groups, Value: in.Answer, Note: in.Note, Via: "api"}))
}

func (c *call) linkInquiry(id flow.ID, in *api.Invitation) error {
	token, i, err := c.Engine.Inquiries().Invite(c.ctx(), id, in.For, in.Groups)
	if err != nil {
		return c.renderedInquiry(nil, err)
	}
	return c.json(http.StatusOK, api.AnswerLink{Path: answerPath + token, For: in.For, Due: moment(i.Due)})
}
