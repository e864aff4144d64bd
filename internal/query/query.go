// Package query parses conditions on executions, such as `label.team = docs and status = failed and created > -7d`, and decides whether an
// execution meets one. Bounds are the part of a condition for which a store has indexes and columns; the rest is decided execution by
// execution. It is pure.
package query

import (
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
)

// Query is a condition. It is immutable.
type Query struct {
	text    string
	root    node
	members []*term // terms about members of inputs and outputs
}

// String returns the condition as it was written.
func (q *Query) String() string { return q.text }

// Verdict is whether an execution meets a condition.
type Verdict uint8

// The verdicts. Unknown means that it depends on members of the input or output, which are not loaded.
const (
	No Verdict = iota
	Unknown
	Yes
)

// Record is an execution with the data for a condition.
type Record struct {
	*flow.Execution
	Worker string // name of the worker that holds it; empty: none, or unknown
	// Loaded means that Input and Output are set; only their Searchable members are compared.
	Loaded        bool
	Input, Output []byte
	Searchable    []string
}

// Matches decides whether an execution meets the condition.
func (q *Query) Matches(r *Record) Verdict { return q.root.matches(r) }

// Input and Output report whether the condition uses a member of the input, or of the output.
func (q *Query) Input() bool { return slices.ContainsFunc(q.members, (*term).ofInput) }

// Output is Input of the output.
func (q *Query) Output() bool {
	return slices.ContainsFunc(q.members, func(t *term) bool { return !t.ofInput() })
}

// Worker reports whether the condition uses the name of a worker.
func (q *Query) Worker() bool {
	return anyTerm(q.root, func(t *term) bool { return t.field.about == ofWorker })
}

type node interface{ matches(*Record) Verdict }

type (
	and []node
	or  []node
)

func (all and) matches(r *Record) Verdict {
	v := Yes
	for _, n := range all {
		if v = min(v, n.matches(r)); v == No {
			break
		}
	}
	return v
}

func (some or) matches(r *Record) Verdict {
	v := No
	for _, n := range some {
		if v = max(v, n.matches(r)); v == Yes {
			break
		}
	}
	return v
}

func anyTerm(n node, is func(*term) bool) bool {
	beneath := func(n node) bool { return anyTerm(n, is) }
	switch n := n.(type) {
	case and:
		return slices.ContainsFunc(n, beneath)
	case or:
		return slices.ContainsFunc(n, beneath)
	case *term:
		return is(n)
	}
	return false
}

// not negates a condition. The negation is pushed down to the terms, so that the parts of `not (a or b)` bound a search like any others.
func not(n node) node {
	switch n := n.(type) {
	case and:
		out := make(or, len(n))
		for i, part := range n {
			out[i] = not(part)
		}
		return out
	case or:
		out := make(and, len(n))
		for i, part := range n {
			out[i] = not(part)
		}
		return out
	case *term:
		out := *n
		out.negated = !n.negated
		return &out
	}
	return n
}
