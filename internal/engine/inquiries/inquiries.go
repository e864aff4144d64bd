// Package inquiries runs the executions of kind "ask", which ask people questions, and accepts the answers.
package inquiries

import (
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Inquiries are the questions of executions to people. It is safe for concurrent use.
type Inquiries struct {
	Store   store.Store
	Catalog *catalog.Catalog // which keeps the key of links
	NewID   func() flow.ID
	Random  func() float64
	Decide  txn.Decide

	questions definition.Questions
	parents   parents
	links     linkKey
}

// Module is the part of inquiries in each transaction.
func (q *Inquiries) Module() txn.Module { return txn.Module{Name: "inquiries", AtEnd: writeDecided} }

// Kind defines how executions ask.
func (q *Inquiries) Kind() txn.Kind {
	return txn.Kind{Kind: flow.KindAsk, Check: q.check, Load: q.load, Begin: q.ask, Wake: q.remind, Written: wrote}
}

// part is the decisions of a transaction about inquiries. They are written once, at its end: until then, requests of a batch see the
// decisions of earlier ones here.
type part struct {
	known   map[flow.InquiryKey]*flow.Inquiry // that were looked up; nil: there is none
	of      map[flow.ID]*flow.Inquiry         // those that an execution waits for, or did in this transaction
	changed map[flow.InquiryKey]bool
	left    []*flow.Draft // that asked, and do not wait any more
}

// remember adds an inquiry as it was read or decided.
func (p *part) remember(i *flow.Inquiry) {
	if p.known == nil {
		p.known, p.of, p.changed = map[flow.InquiryKey]*flow.Inquiry{}, map[flow.ID]*flow.Inquiry{}, map[flow.InquiryKey]bool{}
	}
	p.known[i.InquiryKey], p.of[i.Execution] = i, i
}

// decided adds an inquiry that is to be written.
func (p *part) decided(i *flow.Inquiry) {
	p.remember(i)
	p.changed[i.InquiryKey] = true
}
