package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Inquiries keeps the questions that executions wait for. They are not locked: each is written on the condition that it is as
// it was read.
type Inquiries interface {
	// InquiriesOf loads the inquiries that there are of the keys, in any order.
	InquiriesOf(ctx context.Context, keys []flow.InquiryKey) ([]*flow.Inquiry, error)
	// OpenInquiries loads the inquiries that executions wait for, in any order.
	OpenInquiries(ctx context.Context, executions []flow.ID) ([]*flow.Inquiry, error)
	// PutInquiries writes inquiries, each as the next revision of what was read; one of revision 0 is new. It returns ErrConflict
	// when a row has another revision, or there is one for the key or the execution. It is the last that a transaction does with
	// inquiries.
	PutInquiries(ctx context.Context, all []*flow.Inquiry) error
}

// InquiryReader answers readers about inquiries.
type InquiryReader interface {
	// Inquiry returns an inquiry, or ErrNotFound.
	Inquiry(ctx context.Context, id flow.ID) (*flow.Inquiry, error)
	// InquiryOf returns the inquiry that an execution waits for, or was the last to wait for; or ErrNotFound.
	InquiryOf(ctx context.Context, execution flow.ID) (*flow.Inquiry, error)
	// Inquiries returns up to f.Limit inquiries, newest first (by id). Ask for the next page with Before set to the last id. A full Page
	// may have fewer.
	Inquiries(ctx context.Context, f InquiryFilter) ([]*flow.Inquiry, error)
	// CountInquiries counts the open inquiries.
	CountInquiries(ctx context.Context) (int, error)
}

// InquiryFilter selects inquiries.
type InquiryFilter struct {
	State    flow.InquiryState // 0: any
	Assignee string            // only open ones that were put to this person or group by name; "": any
	Before   flow.ID           // cursor: ids below it
	Limit    int
}
