package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

type inquiryColumns = relation[*flow.Inquiry, *flow.Inquiry]

// The columns of inquiries: those that never change, and those that a new revision writes.
var (
	inquiryKeys = inquiryColumns{
		{"id", func(s *stmt, i *flow.Inquiry) { s.id(i.ID) }, func(s *stmt, i *flow.Inquiry) { i.ID = s.getID() }},
		{"asker", func(s *stmt, i *flow.Inquiry) { s.id(i.Asker) }, func(s *stmt, i *flow.Inquiry) { i.Asker = s.getID() }},
		{"purpose", func(s *stmt, i *flow.Inquiry) { s.text(i.Purpose) }, func(s *stmt, i *flow.Inquiry) { i.Purpose = s.getText() }},
	}
	revised = inquiryColumns{
		{"execution", func(s *stmt, i *flow.Inquiry) { s.id(i.Execution) }, func(s *stmt, i *flow.Inquiry) { i.Execution = s.getID() }},
		{"state", func(s *stmt, i *flow.Inquiry) { s.int(int64(i.State)) }, func(s *stmt, i *flow.Inquiry) { i.State = flow.InquiryState(s.getInt()) }},
		{"revision", func(s *stmt, i *flow.Inquiry) { s.int(int64(i.Revision) + 1) }, func(s *stmt, i *flow.Inquiry) { i.Revision = int(s.getInt()) }},
		{"asked_at", func(s *stmt, i *flow.Inquiry) { s.time(i.AskedAt) }, func(s *stmt, i *flow.Inquiry) { i.AskedAt = s.getTime() }},
		{"due", func(s *stmt, i *flow.Inquiry) { s.timeOrNull(i.Due) }, func(s *stmt, i *flow.Inquiry) { i.Due = s.getTime() }},
		{"closed_at", func(s *stmt, i *flow.Inquiry) { s.timeOrNull(i.ClosedAt) }, func(s *stmt, i *flow.Inquiry) { i.ClosedAt = s.getTime() }},
		{"question", putQuestion, func(s *stmt, i *flow.Inquiry) { s.failed(row.DecodeQuestion(&i.Question, s.peekBlob())) }},
		{"answer", putAnswer, getAnswer},
	}
	inquiries = inquiryKeys.with(revised...)
)

func putQuestion(s *stmt, i *flow.Inquiry) {
	question, err := row.Question(&i.Question)
	if err != nil {
		s.fail(err)
	}
	s.text(string(question))
}

func putAnswer(s *stmt, i *flow.Inquiry) {
	answer, err := row.Answer(i.Answer)
	if err != nil {
		s.fail(err)
	}
	s.textOrNull(string(answer))
}

func getAnswer(s *stmt, i *flow.Inquiry) {
	var err error
	i.Answer, err = row.DecodeAnswer(s.peekBlob())
	s.failed(err)
}

var readInquiry = `SELECT ` + inquiries.names("i.") + ` FROM inquiries i `

var (
	qInquiry      = sql(readInquiry + `WHERE id = ?`)
	qInquiryKeyed = sql(readInquiry + `WHERE asker = ? AND purpose = ?`)
	qInquiryOf    = sql(readInquiry + `WHERE execution = ?`)
	qInquiries    = sql(readInquiry + `WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?`)
	qAllInquiries = sql(readInquiry + `WHERE id < ? ORDER BY id DESC LIMIT ?`)
	qAssigned     = sql(`SELECT ` + inquiries.names("i.") + ` FROM assigned a JOIN inquiries i ON i.id = a.inquiry
		WHERE a.who = ? AND a.inquiry < ? ORDER BY a.inquiry DESC LIMIT ?`)

	// A workflow may have asked 10,000 times, and there may be as many open inquiries: the planner is not to choose the index.
	qAskedBy = sql(`SELECT id FROM inquiries INDEXED BY inquiries_open WHERE asker = ? AND closed_at IS NULL ORDER BY purpose LIMIT 1`)
	// The columns beside min() are those of the row that has the minimum.
	qAskers = sql(`SELECT asker, id, min(purpose) FROM inquiries INDEXED BY inquiries_open WHERE closed_at IS NULL GROUP BY asker LIMIT ?`)

	qAskedOf = sql(`SELECT id FROM inquiries INDEXED BY inquiries_execution WHERE execution = ? AND state = 1`)

	qInsertInquiry = sql(inquiries.insert("inquiries"))
	qUpdateInquiry = sql(`UPDATE inquiries SET ` + revised.sets() + ` WHERE id = ? AND revision = ?`)
	qDeleteInquiry = sql(`DELETE FROM inquiries WHERE execution = ?`)
	qAssign        = sql(`INSERT OR IGNORE INTO assigned (who, inquiry) VALUES (?, ?)`)
	qUnassign      = sql(`DELETE FROM assigned WHERE who = ? AND inquiry = ?`)
)

// inquiries reads rows of inquiries until a page is full.
func (s *stmt) inquiries() ([]*flow.Inquiry, error) {
	var all []*flow.Inquiry
	var bad error
	var page store.Page
	for !page.Full() && s.next() {
		i := &flow.Inquiry{}
		if err := inquiries.read(s, i); err != nil {
			bad = fmt.Errorf("read inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
		page.Inquiry(i)
		all = append(all, i)
	}
	return all, cmp.Or(s.done(), bad)
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
func (t *tx) putInquiries(d *store.Delta) error {
	for _, i := range d.Inquiries {
		if err := t.putInquiry(i); err != nil {
			return fmt.Errorf("write inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
	}
	return nil
}

func (t *tx) putInquiry(i *flow.Inquiry) error {
	var s *stmt
	if i.Revision == 0 {
		s = inquiries.bind(t.c.use(qInsertInquiry), i)
	} else {
		before, err := t.c.use(qInquiry).id(i.ID).inquiries()
		if err != nil {
			return err
		}
		for _, b := range before { // it may have been put to others
			if err := t.assign(qUnassign, b); err != nil {
				return err
			}
		}
		s = revised.bind(t.c.use(qUpdateInquiry), i).id(i.ID).int(int64(i.Revision))
	}
	if err := taken(s.run()); err != nil {
		return err
	}
	if t.c.changes() != 1 {
		return fmt.Errorf("%w: it has another revision than %d", store.ErrConflict, i.Revision)
	}
	if i.State != flow.InquiryOpen {
		return nil
	}
	return t.assign(qAssign, i)
}

// assign adds a row of the table assigned for each assignee of an inquiry (qAssign), or deletes it (qUnassign).
func (t *tx) assign(q *query, i *flow.Inquiry) error {
	for _, who := range i.Assignees {
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

// Asking implements store.InquiryReader.
func (s *Store) Asking(ctx context.Context, executions []flow.ID) (map[flow.ID]flow.ID, error) {
	found := map[flow.ID]flow.ID{}
	err := s.read(ctx, func(c *conn) error {
		for _, id := range executions {
			for _, q := range []*query{qAskedBy, qAskedOf} {
				s := c.use(q).id(id)
				if s.next() {
					found[id] = s.getID()
				}
				if err := s.done(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return store.Result(found, err, "look for open inquiries")
}

// Askers implements store.InquiryReader.
func (s *Store) Askers(ctx context.Context, n int) (map[flow.ID]flow.ID, error) {
	found := map[flow.ID]flow.ID{}
	err := s.read(ctx, func(c *conn) error {
		s := c.use(qAskers).int(int64(n))
		for s.next() {
			asker := s.getID()
			found[asker] = s.getID()
		}
		return s.done()
	})
	return store.Result(found, err, "look for what asks")
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
	return store.Result(all, err, "read inquiries")
}
