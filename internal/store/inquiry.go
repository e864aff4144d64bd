package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Inquiries loads the questions for which executions wait. They are not locked: Apply writes one only if it is unchanged since
// it was read.
type Inquiries interface {
	// InquiriesOf loads the inquiries with the keys, as far as they exist, in any order.
	InquiriesOf(ctx context.Context, keys []flow.InquiryKey) ([]*flow.Inquiry, error)
	// OpenInquiries loads the open inquiries for which the executions wait, in any order.
	OpenInquiries(ctx context.Context, executions []flow.ID) ([]*flow.Inquiry, error)
}

// InquiryReader reads inquiries.
type InquiryReader interface {
	// Inquiry returns an inquiry, or ErrNotFound.
	Inquiry(ctx context.Context, id flow.ID) (*flow.Inquiry, error)
	// InquiryOf returns the inquiry for which an execution waits, or was the last to wait; or ErrNotFound.
	InquiryOf(ctx context.Context, execution flow.ID) (*flow.Inquiry, error)
	// Asking returns the ids of open inquiries by executions: for a workflow the first by purpose of those for which its tasks wait, for a
	// task that asks its own. Executions without an open inquiry are left out. It does not read the questions, because a list of executions
	// calls it for each page.
	Asking(ctx context.Context, executions []flow.ID) (map[flow.ID]flow.ID, error)
	// Askers returns the first open inquiry by purpose for up to n executions that ask or whose tasks ask. It does not read the questions.
	Askers(ctx context.Context, n int) (map[flow.ID]flow.ID, error)
	// Inquiries returns up to f.Limit inquiries, newest first (by id). For the next page, set Before to the last id. It returns fewer if a
	// Page is full.
	Inquiries(ctx context.Context, f InquiryFilter) ([]*flow.Inquiry, error)
}

// InquiryFilter selects inquiries.
type InquiryFilter struct {
	State    flow.InquiryState // 0: any
	Assignee string            // only open inquiries with this person or group; "": any
	Before   flow.ID           // cursor: ids below it
	Limit    int
}
