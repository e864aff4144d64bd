package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// InquiryFilter selects inquiries.
type InquiryFilter struct {
	State    string // open by default; "all" for any
	Assignee string // a person, or group:NAME; only with open inquiries
	Limit    int    // of a page; 0: 100
	Cursor   string // NextCursor of the page before
}

func (f InquiryFilter) query() url.Values {
	q := url.Values{}
	set(q, "state", f.State)
	set(q, "assignee", f.Assignee)
	set(q, "cursor", f.Cursor)
	setInt(q, "limit", int64(f.Limit))
	return q
}

// FollowInquiries walks through the latest questions that f selects, f.Limit at most, and then through each question that is asked, or that
// changes while it is among the latest, as FollowSignals does. With State "all", an answer is a change.
func (c *Client) FollowInquiries(ctx context.Context, f InquiryFilter) iter.Seq2[api.Inquiry, error] {
	return follow[api.Inquiry](ctx, c, "/inquiries", f.query(), api.StreamInquiry)
}

// Inquiries returns one page of the questions to people, newest first. f.Cursor is the NextCursor of the previous page.
func (c *Client) Inquiries(ctx context.Context, f InquiryFilter) (*api.InquiryPage, error) {
	return fetch[api.InquiryPage](ctx, c, get("/inquiries", f.query()))
}

// AllInquiries walks through all questions that f selects, newest first, page by page. An error ends the walk.
func (c *Client) AllInquiries(ctx context.Context, f InquiryFilter) iter.Seq2[api.Inquiry, error] {
	return entries(ctx, c, "/inquiries", f.query(), func(p *api.InquiryPage) ([]api.Inquiry, string) { return p.Inquiries, p.NextCursor })
}

// Inquiry loads one question.
func (c *Client) Inquiry(ctx context.Context, id string) (*api.Inquiry, error) {
	return fetch[api.Inquiry](ctx, c, get("/inquiries/"+url.PathEscape(id), nil))
}

// Answer answers a question. Repeating it is harmless.
func (c *Client) Answer(ctx context.Context, id string, r api.Reply) (*api.Inquiry, error) {
	return fetch[api.Inquiry](ctx, c, post("/inquiries/"+url.PathEscape(id)+"/answer", r))
}

// LinkInquiry makes a link by which one person may answer a question. Its Path is relative to the server.
func (c *Client) LinkInquiry(ctx context.Context, id string, r api.Invitation) (*api.AnswerLink, error) {
	return fetch[api.AnswerLink](ctx, c, post("/inquiries/"+url.PathEscape(id)+"/link", r))
}
