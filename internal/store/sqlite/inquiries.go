package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const inquiryColumns = `i.id, i.asker, i.purpose, i.execution, i.state, i.revision, i.asked_at, i.due, i.closed_at, i.question, i.answer`

var (
	qInquiry      = sql(`SELECT ` + inquiryColumns + ` FROM inquiries i WHERE id = ?`)
	qInquiryKeyed = sql(`SELECT ` + inquiryColumns + ` FROM inquiries i WHERE asker = ? AND purpose = ?`)
	qInquiryOf    = sql(`SELECT ` + inquiryColumns + ` FROM inquiries i WHERE execution = ?`)
	qInquiries    = sql(`SELECT ` + inquiryColumns + ` FROM inquiries i WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?`)
	qAllInquiries = sql(`SELECT ` + inquiryColumns + ` FROM inquiries i WHERE id < ? ORDER BY id DESC LIMIT ?`)
	qAssigned     = sql(`SELECT ` + inquiryColumns + ` FROM assigned a JOIN inquiries i ON i.id = a.inquiry
		WHERE a.who = ? AND a.inquiry < ? ORDER BY a.inquiry DESC LIMIT ?`)

	qInsertInquiry = sql(`INSERT INTO inquiries (execution, state, revision, asked_at, due, closed_at, question, answer, id, asker, purpose)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	qUpdateInquiry = sql(`UPDATE inquiries SET execution = ?, state = ?, revision = ?, asked_at = ?, due = ?, closed_at = ?, question = ?, answer = ?
		WHERE id = ? AND revision = ?`)
	qDeleteInquiry = sql(`DELETE FROM inquiries WHERE execution = ?`)
	qAssign        = sql(`INSERT OR IGNORE INTO assigned (who, inquiry) VALUES (?, ?)`)
	qUnassign      = sql(`DELETE FROM assigned WHERE who = ? AND inquiry = ?`)
)

// inquiries reads rows of inquiryColumns until a page is full.
func (s *stmt) inquiries() ([]*flow.Inquiry, error) {
	var all []*flow.Inquiry
	var bad error
	var page store.Page
	for !page.Full() && s.next() {
		i := &flow.Inquiry{ID: s.getID(), InquiryKey: flow.InquiryKey{Asker: s.getID(), Purpose: s.getText()}, Execution: s.getID(),
			State: flow.InquiryState(s.getInt()), Revision: int(s.getInt()), AskedAt: row.FromMicros(s.getInt()),
			Due: row.FromMicros(s.getInt()), ClosedAt: row.FromMicros(s.getInt())}
		if err := row.DecodeQuestion(&i.Question, s.peekBlob()); err != nil {
			bad = fmt.Errorf("read inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
		answer, err := row.DecodeAnswer(s.peekBlob())
		if err != nil {
			bad = fmt.Errorf("read inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
		i.Answer = answer
		page.Inquiry(i)
		all = append(all, i)
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	return all, bad
}

// InquiriesOf implements store.Inquiries.
func (t *tx) InquiriesOf(_ context.Context, keys []flow.InquiryKey) ([]*flow.Inquiry, error) {
	var all []*flow.Inquiry
	for _, k := range keys {
		found, err := t.c.use(qInquiryKeyed).id(k.Asker).text(k.Purpose).inquiries()
		if err != nil {
			return nil, fmt.Errorf("look for inquiry %q: %w", k.Purpose, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// OpenInquiries implements store.Inquiries.
func (t *tx) OpenInquiries(_ context.Context, executions []flow.ID) ([]*flow.Inquiry, error) {
	var all []*flow.Inquiry
	for _, id := range executions {
		found, err := t.c.use(qInquiryOf).id(id).inquiries()
		if err != nil {
			return nil, fmt.Errorf("look for the inquiry of %s: %w", id, err)
		}
		for _, i := range found {
			if i.State == flow.InquiryOpen {
				all = append(all, i)
			}
		}
	}
	return all, nil
}

// putInquiries writes inquiries.
func (t *tx) putInquiries(all []*flow.Inquiry) error {
	for _, i := range all {
		if err := t.putInquiry(i); err != nil {
			return fmt.Errorf("write inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
	}
	return nil
}

func (t *tx) putInquiry(i *flow.Inquiry) error {
	question, err := row.Question(&i.Question)
	if err != nil {
		return err
	}
	answer, err := row.Answer(i.Answer)
	if err != nil {
		return err
	}
	q := qUpdateInquiry
	if i.Revision == 0 {
		q = qInsertInquiry
	}
	s := t.c.use(q).id(i.Execution).int(int64(i.State)).int(int64(i.Revision) + 1).int(row.Micros(i.AskedAt)).intOrNull(row.Micros(i.Due)).
		intOrNull(row.Micros(i.ClosedAt)).text(string(question)).textOrNull(string(answer)).id(i.ID)
	if i.Revision == 0 {
		s = s.id(i.Asker).text(i.Purpose)
	} else {
		s = s.int(int64(i.Revision))
	}
	if err := taken(s.run()); err != nil {
		return err
	}
	if t.c.changes() != 1 {
		return fmt.Errorf("%w: it has another revision than %d", store.ErrConflict, i.Revision)
	}
	for _, who := range i.Assignees {
		q := qUnassign
		if i.State == flow.InquiryOpen {
			q = qAssign
		}
		if err := t.c.use(q).text(who).id(i.ID).run(); err != nil {
			return err
		}
	}
	return nil
}

// Inquiry implements store.InquiryReader.
func (s *Store) Inquiry(ctx context.Context, id flow.ID) (*flow.Inquiry, error) {
	return s.oneInquiry(ctx, qInquiry, id)
}

// InquiryOf implements store.InquiryReader.
func (s *Store) InquiryOf(ctx context.Context, execution flow.ID) (*flow.Inquiry, error) {
	return s.oneInquiry(ctx, qInquiryOf, execution)
}

func (s *Store) oneInquiry(ctx context.Context, q *query, id flow.ID) (*flow.Inquiry, error) {
	return one(ctx, s, func(c *conn) ([]*flow.Inquiry, error) { return c.use(q).id(id).inquiries() }, "read an inquiry")
}

// lastID is beyond every id.
var lastID = flow.ID([]byte(strings.Repeat("\xff", len(flow.ID{}))))

// Inquiries implements store.InquiryReader.
func (s *Store) Inquiries(ctx context.Context, f store.InquiryFilter) (all []*flow.Inquiry, err error) {
	before := f.Before
	if before.IsZero() {
		before = lastID
	}
	err = s.read(ctx, func(c *conn) (err error) {
		var s *stmt
		switch {
		case f.Assignee != "":
			s = c.use(qAssigned).text(f.Assignee)
		case f.State != 0:
			s = c.use(qInquiries).int(int64(f.State))
		default:
			s = c.use(qAllInquiries)
		}
		all, err = s.id(before).int(int64(f.Limit)).inquiries()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read inquiries: %w", err)
	}
	return all, nil
}
