// Package inquiries runs the executions of kind "ask", which put a question to people, and takes their answers.
package inquiries

import (
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Inquiries are the questions that executions put to people. It is safe for concurrent use.
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

// Module is what inquiries add to each transaction.
func (q *Inquiries) Module() txn.Module { return txn.Module{Name: "inquiries", AtEnd: writeDecided} }

// Kind is how executions ask.
func (q *Inquiries) Kind() txn.Kind {
	return txn.Kind{Kind: flow.KindAsk, Check: q.check, Load: q.load, Begin: q.ask, Wake: q.remind, Written: wrote}
}

// part is what a transaction has decided about inquiries. They are written once, at its end: until then it is here that the
// requests of a batch see what those before them have decided.
type part struct {
	known   map[flow.InquiryKey]*flow.Inquiry // that were looked for; nil: there is none
	of      map[flow.ID]*flow.Inquiry         // those of them that an execution waits for, or did so in this transaction
	changed map[flow.InquiryKey]bool
	left    []*flow.Draft // that asked, and do not wait for the answer any more
}

// remember takes in an inquiry as it was read, or as it is decided.
func (p *part) remember(i *flow.Inquiry) {
	if p.known == nil {
		p.known, p.of, p.changed = map[flow.InquiryKey]*flow.Inquiry{}, map[flow.ID]*flow.Inquiry{}, map[flow.InquiryKey]bool{}
	}
	p.known[i.InquiryKey], p.of[i.Execution] = i, i
}

// decided takes in an inquiry that is to be written.
func (p *part) decided(i *flow.Inquiry) {
	p.remember(i)
	p.changed[i.InquiryKey] = true
}
