package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Inquiries loads the questions that executions wait for. They are not locked: Apply writes each on the condition that it is as
// it was read.
type Inquiries interface {
	// InquiriesOf loads the inquiries that there are of the keys, in any order.
	InquiriesOf(ctx context.Context, keys []flow.InquiryKey) ([]*flow.Inquiry, error)
	// OpenInquiries loads the inquiries that executions wait for, in any order.
	OpenInquiries(ctx context.Context, executions []flow.ID) ([]*flow.Inquiry, error)
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
}

// InquiryFilter selects inquiries.
type InquiryFilter struct {
	State    flow.InquiryState // 0: any
	Assignee string            // only open ones that were put to this person or group by name; "": any
	Before   flow.ID           // cursor: ids below it
	Limit    int
}
