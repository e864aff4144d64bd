package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// inquiryRow is an inquiry with its question and answer encoded.
type inquiryRow struct {
	*flow.Inquiry
	question, answer []byte
}

var inquiries = relation[*inquiryRow, *flow.Inquiry]{
	{"id", oidUUID, func(c *column, i *inquiryRow) { c.id(i.ID) }, func(r *rows, i *flow.Inquiry) { i.ID = r.id() }},
	{"asker", oidUUID, func(c *column, i *inquiryRow) { c.id(i.Asker) }, func(r *rows, i *flow.Inquiry) { i.Asker = r.id() }},
	{"purpose", oidText, func(c *column, i *inquiryRow) { c.text(i.Purpose) }, func(r *rows, i *flow.Inquiry) { i.Purpose = r.text() }},
	{"execution", oidUUID, func(c *column, i *inquiryRow) { c.id(i.Execution) }, func(r *rows, i *flow.Inquiry) { i.Execution = r.id() }},
	{"state", oidInt2, func(c *column, i *inquiryRow) { c.int(int64(i.State)) }, func(r *rows, i *flow.Inquiry) { i.State = flow.InquiryState(r.int()) }},
	{"revision", oidInt4, func(c *column, i *inquiryRow) { c.int(int64(i.Revision) + 1) }, func(r *rows, i *flow.Inquiry) { i.Revision = int(r.int()) }},
	{"asked_at", oidInt8, func(c *column, i *inquiryRow) { c.int(row.Micros(i.AskedAt)) }, func(r *rows, i *flow.Inquiry) { i.AskedAt = r.time() }},
	{"due", oidInt8, func(c *column, i *inquiryRow) { c.intOrNull(row.Micros(i.Due)) }, func(r *rows, i *flow.Inquiry) { i.Due = r.time() }},
	{"closed_at", oidInt8, func(c *column, i *inquiryRow) { c.intOrNull(row.Micros(i.ClosedAt)) }, func(r *rows, i *flow.Inquiry) { i.ClosedAt = r.time() }},
	{"question", oidJSON, func(c *column, i *inquiryRow) { c.bytes(i.question) }, func(r *rows, i *flow.Inquiry) { r.failed(row.DecodeQuestion(&i.Question, r.peek())) }},
	{"answer", oidJSON, func(c *column, i *inquiryRow) { c.bytesOrNull(i.answer) }, func(r *rows, i *flow.Inquiry) {
		answer, err := row.DecodeAnswer(r.peek())
		i.Answer = answer
		r.failed(err)
	}},
}

var inquiryColumns = inquiries.names("i.")

// inquiryKeys are keys to look up; assigned are the people by name to whom open inquiries are put.
var (
	inquiryKeys = relation[flow.InquiryKey, none]{
		{"asker", oidUUID, func(c *column, k flow.InquiryKey) { c.id(k.Asker) }, nil},
		{"purpose", oidText, func(c *column, k flow.InquiryKey) { c.text(k.Purpose) }, nil},
	}
	assigned = relation[assignment, none]{
		{"inquiry", oidUUID, func(c *column, a assignment) { c.id(a.inquiry) }, nil},
		{"who", oidText, func(c *column, a assignment) { c.text(a.who) }, nil},
	}
)

type assignment struct {
	inquiry flow.ID
	who     string
}

var (
	qInquiry   = sql(`SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE ` + from("i.id", "$1") + ` ORDER BY i.id`)
	qInquiryOf = sql(`SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE i.execution = $1`)

	qInquiriesOf = sql(`SELECT ` + inquiryColumns + ` FROM ` + inquiryKeys.rows() + ` AS v
		CROSS JOIN LATERAL (SELECT * FROM {s}.inquiries i WHERE i.asker = v.asker AND i.purpose = v.purpose OFFSET 0) i`)
	qInquiriesWaited = sql(`SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE i.execution = ANY ($1::uuid[])`)

	qOpenInquiries = sql(`SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE i.execution = ANY ($1::uuid[]) AND i.state + 0 = 1`)

	// A workflow may have asked 10,000 times, and there may be as many open inquiries. Each condition for an open one fits one index alone.
	qAsking = sql(`SELECT v.id, i.id FROM unnest($1::uuid[]) AS v(id)
			CROSS JOIN LATERAL (SELECT i.id FROM {s}.inquiries i WHERE i.asker = v.id AND i.closed_at IS NULL ORDER BY i.purpose LIMIT 1) i
		UNION ALL SELECT i.execution, i.id FROM {s}.inquiries i WHERE i.execution = ANY ($1::uuid[]) AND i.state + 0 = 1`)

	qAskers = sql(`SELECT DISTINCT ON (asker) asker, id FROM {s}.inquiries WHERE closed_at IS NULL ORDER BY asker, purpose LIMIT $1`)

	qInquiries    = sql(inquiryPage(`SELECT * FROM {s}.inquiries WHERE state = $1::bigint AND id < $2 ORDER BY id DESC LIMIT $3`))
	qAllInquiries = sql(inquiryPage(`SELECT * FROM {s}.inquiries WHERE id < $1 ORDER BY id DESC LIMIT $2`))
	qAssigned     = sql(inquiryPage(`SELECT i.* FROM (SELECT a.inquiry FROM {s}.assigned a WHERE ` + from("a.who", "$1") + ` AND a.inquiry < $2 ORDER BY a.who DESC, a.inquiry DESC LIMIT $3) a
		CROSS JOIN LATERAL (SELECT * FROM {s}.inquiries i WHERE ` + from("i.id", "a.inquiry") + ` ORDER BY i.id OFFSET 0) i ORDER BY i.id DESC`))

	// Rows are written one after the other, in the order given. A row is not written when its revision is not the one that
	// was read, or when it is new and exists already.
	qPutInquiries = sql(`WITH put AS (` + inquiries.insert("inquiries AS i") + `
			ON CONFLICT (asker, purpose) DO UPDATE SET execution = excluded.execution, state = excluded.state, revision = excluded.revision,
				asked_at = excluded.asked_at, due = excluded.due, closed_at = excluded.closed_at, question = excluded.question, answer = excluded.answer
			WHERE i.revision = excluded.revision - 1 RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM put), cardinality($1), 'PW409', 'inquiries are no longer as they were read')`)

	qUnassign        = sql(`DELETE FROM {s}.assigned a WHERE a.inquiry = ANY ($1::uuid[])`)
	qAssign          = sql(assigned.insert("assigned") + ` ON CONFLICT DO NOTHING`)
	qDeleteInquiries = sql(`DELETE FROM {s}.inquiries i WHERE i.execution = ANY ($1::uuid[])`)
)

// inquiryPage are the inquiries of a query, in its order, until they fill a page for certain, since forms and answers may be
// large. Stored JSON has up to six bytes for one byte of text, hence the factor.
func inquiryPage(query string) string {
	const size = `octet_length(x.question::text) + coalesce(octet_length(x.answer::text), 0)`
	return `SELECT ` + inquiryColumns + ` FROM (SELECT *, sum(` + size + `) OVER (ROWS UNBOUNDED PRECEDING) - (` + size + `) AS ahead FROM (` +
		query + `) x) i WHERE ahead < ` + fmt.Sprint(6*store.PageBytes)
}

// readInquiryPage returns a reader that adds each row to all until a page is full.
func readInquiryPage(all *[]*flow.Inquiry) func(*rows) error {
	var page store.Page
	return func(r *rows) error {
		if page.Full() {
			return nil
		}
		i := &flow.Inquiry{}
		err := inquiries.read(r, i)
		page.Inquiry(i)
		*all = append(*all, i)
		return err
	}
}

// readInquiries returns a reader that adds each row to all.
func readInquiries(all *[]*flow.Inquiry) func(*rows) error {
	return func(r *rows) error {
		i := &flow.Inquiry{}
		*all = append(*all, i)
		return inquiries.read(r, i)
	}
}

// InquiriesOf implements store.Inquiries.
func (t *tx) InquiriesOf(ctx context.Context, keys []flow.InquiryKey) (all []*flow.Inquiry, err error) {
	err = t.ask(ctx, qInquiriesOf, t.args().columns(inquiryKeys.columns(keys...)), readInquiries(&all))
	return store.Result(all, err, "look for %d inquiries", len(keys))
}

// OpenInquiries implements store.Inquiries.
func (t *tx) OpenInquiries(ctx context.Context, executions []flow.ID) (all []*flow.Inquiry, err error) {
	err = t.ask(ctx, qOpenInquiries, t.args().ids(executions), readInquiries(&all))
	return store.Result(all, err, "look for the inquiries of %d executions", len(executions))
}

// putInquiries writes inquiries.
func (t *tx) putInquiries(all []*flow.Inquiry) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b *flow.Inquiry) int {
		if n := bytes.Compare(a.Asker[:], b.Asker[:]); n != 0 {
			return n
		}
		return strings.Compare(a.Purpose, b.Purpose)
	})
	var put, assign columns
	inquiries.begin(&put)
	assigned.begin(&assign)
	var known []flow.ID
	for _, i := range all {
		r := &inquiryRow{Inquiry: i}
		var err error
		if r.question, err = row.Question(&i.Question); err == nil {
			r.answer, err = row.Answer(i.Answer)
		}
		if err != nil {
			return fmt.Errorf("write inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
		inquiries.add(&put, r)
		if i.Revision > 0 {
			known = append(known, i.ID)
		}
		for _, who := range i.Assignees {
			if i.State == flow.InquiryOpen {
				assigned.add(&assign, assignment{i.ID, who})
			}
		}
	}
	t.put(qPutInquiries, &put)
	if len(known) > 0 {
		t.add(qUnassign, t.args().ids(known), nil)
	}
	t.put(qAssign, &assign)
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
	var all []*flow.Inquiry
	err := s.read(ctx, call{q: q, params: new(args).id(id).params, read: readInquiries(&all)})
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read an inquiry: %w", err)
	}
	return all[0], nil
}

// Asking implements store.InquiryReader.
func (s *Store) Asking(ctx context.Context, executions []flow.ID) (map[flow.ID]flow.ID, error) {
	var a args
	return s.openByID(ctx, qAsking, a.ids(executions))
}

// Askers implements store.InquiryReader.
func (s *Store) Askers(ctx context.Context, n int) (map[flow.ID]flow.ID, error) {
	var a args
	return s.openByID(ctx, qAskers, a.int(int64(n)))
}

// openByID reads the ids of open inquiries by executions.
func (s *Store) openByID(ctx context.Context, q *query, a *args) (map[flow.ID]flow.ID, error) {
	found := map[flow.ID]flow.ID{}
	err := s.read(ctx, call{q: q, params: a.params, read: func(r *rows) error {
		of := r.id()
		found[of] = r.id()
		return nil
	}})
	return store.Result(found, err, "look for open inquiries")
}

// lastID is beyond every id.
var lastID = flow.ID([]byte(strings.Repeat("\xff", len(flow.ID{}))))

// Inquiries implements store.InquiryReader.
func (s *Store) Inquiries(ctx context.Context, f store.InquiryFilter) (all []*flow.Inquiry, err error) {
	before := f.Before
	if before.IsZero() {
		before = lastID
	}
	k := call{q: qAllInquiries, read: readInquiryPage(&all)}
	var a args
	switch {
	case f.Assignee != "":
		k.q = qAssigned
		a.text(f.Assignee)
	case f.State != 0:
		k.q = qInquiries
		a.int(int64(f.State))
	}
	k.params = a.id(before).int(int64(f.Limit)).params
	err = s.read(ctx, k)
	return store.Result(all, err, "read inquiries")
}
