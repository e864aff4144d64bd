package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// InquiryFilter selects inquiries.
type InquiryFilter struct {
	State    string // open by default; "all" for any
	Assignee string // a person, or group:NAME; open ones only
	Limit    int
}

// Inquiries lists up to f.Limit questions to people, newest first.
func (c *Client) Inquiries(ctx context.Context, f InquiryFilter) ([]api.Inquiry, error) {
	q := url.Values{}
	if f.State != "" {
		q.Set("state", f.State)
	}
	if f.Assignee != "" {
		q.Set("assignee", f.Assignee)
	}
	setInt(q, "limit", int64(f.Limit))
	var p api.InquiryPage
	err := c.call(ctx, request{method: http.MethodGet, path: "/inquiries", query: q, repeatable: true}, &p)
	return p.Inquiries, err
}

// Inquiry loads one question.
func (c *Client) Inquiry(ctx context.Context, id string) (*api.Inquiry, error) {
	var i api.Inquiry
	err := c.get(ctx, "/inquiries/"+url.PathEscape(id), "", &i)
	return orNil(&i, err)
}

// Answer answers a question. Doing so again is harmless.
func (c *Client) Answer(ctx context.Context, id string, r api.Reply) (*api.Inquiry, error) {
	var i api.Inquiry
	err := c.call(ctx, request{method: http.MethodPost, path: "/inquiries/" + url.PathEscape(id) + "/answer", body: r, repeatable: true}, &i)
	return orNil(&i, err)
}

// LinkInquiry makes a link by which one person may answer a question. Its path is one of the server's.
func (c *Client) LinkInquiry(ctx context.Context, id string, r api.Invitation) (*api.AnswerLink, error) {
	var l api.AnswerLink
	err := c.call(ctx, request{method: http.MethodPost, path: "/inquiries/" + url.PathEscape(id) + "/link", body: r, repeatable: true}, &l)
	return orNil(&l, err)
}
