package relational

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// inquiryRow is an inquiry; for writing, its question and answer are encoded.
type inquiryRow struct {
	flow.Inquiry
	question, answer string
}

var inquiries = Relation[inquiryRow]{
	id("id", func(i *inquiryRow) *flow.ID { return &i.ID }),
	id("asker", func(i *inquiryRow) *flow.ID { return &i.Asker }),
	text("purpose", func(i *inquiryRow) *string { return &i.Purpose }),
	id("execution", func(i *inquiryRow) *flow.ID { return &i.Execution }),
	number("state", Int2, func(i *inquiryRow) *flow.InquiryState { return &i.State }),
	{"revision", Int4, func(a Args, i *inquiryRow) { a.Int(int64(i.Revision) + 1) }, func(r Row, i *inquiryRow) error {
		i.Revision = int(r.Int())
		return nil
	}},
	moment("asked_at", func(i *inquiryRow) *time.Time { return &i.AskedAt }),
	momentOrNull("due", func(i *inquiryRow) *time.Time { return &i.Due }),
	momentOrNull("closed_at", func(i *inquiryRow) *time.Time { return &i.ClosedAt }),
	{"question", JSON, func(a Args, i *inquiryRow) { a.Text(i.question) }, func(r Row, i *inquiryRow) error {
		return row.DecodeQuestion(&i.Question, r.Peek())
	}},
	orNull(Column[inquiryRow]{"answer", JSON, func(a Args, i *inquiryRow) { a.Text(i.answer) }, func(r Row, i *inquiryRow) (err error) {
		i.Answer, err = row.DecodeAnswer(r.Peek())
		return err
	}}, func(i *inquiryRow) bool { return i.answer == "" }),
}

var inquiryColumns = inquiries.names("i.")

// inquiryKeys are keys for look-ups, ids are ids.
var (
	inquiryKeys = Relation[flow.InquiryKey]{
		id("asker", func(k *flow.InquiryKey) *flow.ID { return &k.Asker }),
		text("purpose", func(k *flow.InquiryKey) *string { return &k.Purpose }),
	}
	ids = Relation[flow.ID]{id("id", func(i *flow.ID) *flow.ID { return i })}
)

// assignment is one person or group to whom an open inquiry is assigned.
type assignment struct {
	inquiry flow.ID
	who     string
}

var assigned = Relation[assignment]{
	id("inquiry", func(a *assignment) *flow.ID { return &a.inquiry }),
	text("who", func(a *assignment) *string { return &a.who }),
}

var (
	qInquiry = sql(func(d dialect) string {
		return `SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE ` + d.from("i.id", "$1") + ` ORDER BY i.id`
	})
	qInquiryOf = same(`SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE i.execution = $1`)

	qInquiriesKeyed = sql(func(d dialect) string {
		return `SELECT ` + inquiryColumns + ` FROM ` + inquiryKeys.rows(d) + ` AS v` +
			d.lookUp("inquiries", "i", `i.asker = v.asker AND i.purpose = v.purpose`)
	})
	qInquiriesOf = sql(func(d dialect) string {
		return `SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE ` + d.in("i.execution", UUID)
	})
	qOpenInquiries = sql(func(d dialect) string {
		return `SELECT ` + inquiryColumns + ` FROM {s}.inquiries i WHERE ` + d.in("i.execution", UUID) + ` AND i.state + 0 = 1`
	})

	// A workflow may have asked 10,000 times, and may have as many open inquiries. Each condition for an open inquiry fits only one index.
	qAsking = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT * FROM (SELECT asker, id FROM inquiries INDEXED BY inquiries_open WHERE asker = ?1 AND closed_at IS NULL
					ORDER BY purpose LIMIT 1)
				UNION ALL SELECT execution, id FROM inquiries INDEXED BY inquiries_execution WHERE execution = ?1 AND state = 1`
		}
		return `SELECT v.id, i.id FROM ` + ids.rows(d) + ` AS v
				CROSS JOIN LATERAL (SELECT i.id FROM {s}.inquiries i WHERE i.asker = v.id AND i.closed_at IS NULL
					ORDER BY i.purpose LIMIT 1) i
			UNION ALL SELECT i.execution, i.id FROM {s}.inquiries i WHERE ` + d.in("i.execution", UUID) + ` AND i.state + 0 = 1`
	})

	qAskers = sql(func(d dialect) string {
		if d == sqlite { // columns next to min() have the values of the row with the minimum
			return `SELECT asker, id, min(purpose) FROM inquiries INDEXED BY inquiries_open WHERE closed_at IS NULL GROUP BY asker
				LIMIT ?1`
		}
		return `SELECT DISTINCT ON (asker) asker, id FROM {s}.inquiries WHERE closed_at IS NULL ORDER BY asker, purpose LIMIT $1`
	}).whole()

	qInquiries = sql(func(d dialect) string {
		return inquiryPage(d, `SELECT * FROM {s}.inquiries WHERE state = $1::bigint AND id < $2 ORDER BY id DESC LIMIT $3`)
	})
	qAllInquiries = sql(func(d dialect) string {
		return inquiryPage(d, `SELECT * FROM {s}.inquiries WHERE id < $1 ORDER BY id DESC LIMIT $2`)
	})
	qAssigned = sql(func(d dialect) string {
		if d == sqlite {
			return inquiryPage(d, `SELECT i.* FROM assigned a JOIN inquiries i ON i.id = a.inquiry WHERE a.who = ?1 AND a.inquiry < ?2
				ORDER BY a.inquiry DESC LIMIT ?3`)
		}
		return inquiryPage(d, `SELECT i.* FROM (SELECT a.inquiry FROM {s}.assigned a WHERE `+d.from("a.who", "$1")+` AND a.inquiry < $2
				ORDER BY a.who DESC, a.inquiry DESC LIMIT $3) a
			CROSS JOIN LATERAL (SELECT * FROM {s}.inquiries i WHERE `+d.from("i.id", "a.inquiry")+` ORDER BY i.id OFFSET 0) i
			ORDER BY i.id DESC`)
	})

	// A row is not written if its revision differs from the one that was read, or if it is new and already exists.
	qPutInquiries = sql(func(d dialect) string {
		return inquiries.insert(d, "inquiries AS i") + ` ON CONFLICT (asker, purpose) DO UPDATE SET execution = excluded.execution,
			state = excluded.state, revision = excluded.revision, asked_at = excluded.asked_at, due = excluded.due,
			closed_at = excluded.closed_at, question = excluded.question,
			answer = excluded.answer WHERE i.revision = excluded.revision - 1`
	}).exactly(store.ErrConflict, "inquiries are no longer as they were read")

	qUnassign      = sql(func(d dialect) string { return `DELETE FROM {s}.assigned AS a WHERE ` + d.in("a.inquiry", UUID) })
	qAssign        = sql(func(d dialect) string { return assigned.insert(d, "assigned") + ` ON CONFLICT DO NOTHING` })
	qDropInquiries = sql(func(d dialect) string { return `DELETE FROM {s}.inquiries AS i WHERE ` + d.in("i.execution", UUID) })
)

// inquiryPage returns the inquiries of a query, in its order. PostgreSQL sends whole answers, so the statement itself ends where they
// certainly fill a page, because forms and answers may be large. Stored JSON has up to six bytes for each byte of text, hence the factor.
func inquiryPage(d dialect, query string) string {
	if d == sqlite {
		return `SELECT ` + inquiryColumns + ` FROM (` + query + `) i`
	}
	const size = `octet_length(x.question::text) + coalesce(octet_length(x.answer::text), 0)`
	return `SELECT ` + inquiryColumns + `
		FROM (SELECT *, sum(` + size + `) OVER (ROWS UNBOUNDED PRECEDING) - (` + size + `) AS ahead FROM (` +
		query + `) x) i WHERE ahead < ` + fmt.Sprint(6*store.PageBytes)
}

// readInquiries reads inquiries until a page is full.
func readInquiries(ctx context.Context, q Querier, c Call) (all []*flow.Inquiry, err error) {
	var page store.Page
	c.Read = func(r Row) error {
		if page.Full() {
			return ErrEnough
		}
		i := &inquiryRow{}
		err := inquiries.read(r, i)
		page.Inquiry(&i.Inquiry)
		all = append(all, &i.Inquiry)
		return err
	}
	err = q.Run(ctx, c)
	return all, err
}

func (t Tx) InquiriesOf(ctx context.Context, of []flow.InquiryKey) ([]*flow.Inquiry, error) {
	all, err := allInquiries(ctx, t, Call{Statement: qInquiriesKeyed, Rows: inquiryKeys.input(of)})
	return store.Result(all, err, "look for %d inquiries", len(of))
}

func (t Tx) OpenInquiries(ctx context.Context, executions []flow.ID) ([]*flow.Inquiry, error) {
	all, err := allInquiries(ctx, t, Call{Statement: qOpenInquiries, Rows: ids.input(executions)})
	return store.Result(all, err, "look for the inquiries of %d executions", len(executions))
}

// InquiriesFor reads the inquiries for which executions wait, or were the last to wait.
func InquiriesFor(ctx context.Context, q Querier, executions []flow.ID) ([]*flow.Inquiry, error) {
	all, err := allInquiries(ctx, q, Call{Statement: qInquiriesOf, Rows: ids.input(executions)})
	return store.Result(all, err, "read the inquiries of %d executions", len(executions))
}

// allInquiries reads inquiries without a limit on their bytes.
func allInquiries(ctx context.Context, q Querier, c Call) (all []*flow.Inquiry, err error) {
	c.Read = func(r Row) error {
		i := &inquiryRow{}
		all = append(all, &i.Inquiry)
		return inquiries.read(r, i)
	}
	err = q.Run(ctx, c)
	return all, err
}

// putInquiries writes inquiries, sorted, because transactions wait for each other's.
func (t Tx) putInquiries(ctx context.Context, all []*flow.Inquiry) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b *flow.Inquiry) int {
		return cmp.Or(bytes.Compare(a.Asker[:], b.Asker[:]), strings.Compare(a.Purpose, b.Purpose))
	})
	put := make([]inquiryRow, len(all))
	var known []flow.ID
	var assign []assignment
	for n, i := range all {
		question, err := row.Question(&i.Question)
		if err != nil {
			return fmt.Errorf("write inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
		answer, err := row.Answer(i.Answer)
		if err != nil {
			return fmt.Errorf("write inquiry %s: %w", i.ID.Text(flow.InquiryPrefix), err)
		}
		put[n] = inquiryRow{*i, string(question), string(answer)}
		if i.Revision > 0 { // its assignees may have changed
			known = append(known, i.ID)
		}
		for _, who := range i.Assignees {
			if i.State == flow.InquiryOpen {
				assign = append(assign, assignment{i.ID, who})
			}
		}
	}
	err := t.Queue(ctx, Call{Statement: qPutInquiries, Rows: inquiries.input(put)}, Call{Statement: qUnassign, Rows: ids.input(known)},
		Call{Statement: qAssign, Rows: assigned.input(assign)})
	return store.Failed(err, "write %d inquiries", len(all))
}

// DropInquiries deletes the inquiries of removed executions.
func (t Tx) DropInquiries(ctx context.Context, executions []flow.ID) error {
	return t.Queue(ctx, Call{Statement: qDropInquiries, Rows: ids.input(executions)})
}

func (s Reader) Inquiry(ctx context.Context, id flow.ID) (*flow.Inquiry, error) {
	return s.oneInquiry(ctx, qInquiry, id)
}

func (s Reader) InquiryOf(ctx context.Context, execution flow.ID) (*flow.Inquiry, error) {
	return s.oneInquiry(ctx, qInquiryOf, execution)
}

func (s Reader) oneInquiry(ctx context.Context, q *Statement, id flow.ID) (*flow.Inquiry, error) {
	all, err := allInquiries(ctx, s, Call{Statement: q, Args: []any{id}})
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read an inquiry: %w", err)
	}
	return all[0], nil
}

func (s Reader) Asking(ctx context.Context, executions []flow.ID) (map[flow.ID]flow.ID, error) {
	return s.openByID(ctx, Call{Statement: qAsking, Rows: ids.input(executions)})
}

func (s Reader) Askers(ctx context.Context, n int) (map[flow.ID]flow.ID, error) {
	return s.openByID(ctx, Call{Statement: qAskers, Args: []any{n}})
}

// openByID reads the ids of open inquiries by executions.
func (s Reader) openByID(ctx context.Context, c Call) (map[flow.ID]flow.ID, error) {
	found := map[flow.ID]flow.ID{}
	c.Read = func(r Row) error {
		of := idOf(r)
		found[of] = idOf(r)
		return nil
	}
	err := s.Run(ctx, c)
	return store.Result(found, err, "look for open inquiries")
}

// lastID is greater than every id.
var lastID = flow.ID([]byte(strings.Repeat("\xff", len(flow.ID{}))))

func (s Reader) Inquiries(ctx context.Context, f store.InquiryFilter) ([]*flow.Inquiry, error) {
	before := f.Before
	if before.IsZero() {
		before = lastID
	}
	c := Call{Statement: qAllInquiries, Args: []any{before, f.Limit}}
	switch {
	case f.Assignee != "":
		c.Statement, c.Args = qAssigned, []any{f.Assignee, before, f.Limit}
	case f.State != 0:
		c.Statement, c.Args = qInquiries, []any{int(f.State), before, f.Limit}
	}
	all, err := readInquiries(ctx, s, c)
	return store.Result(all, err, "read inquiries")
}
