package txn

// Budget bounds one transaction beyond its requests, or one pass of a loop.
type Budget struct {
	Rows  int // executions that are created, admitted or ended
	Bytes int // of what they are handed
	Work  int // operations of users' expressions (definition.Work)
}

// WithRows is the budget with another number of rows.
func (b Budget) WithRows(n int) Budget {
	b.Rows = n
	return b
}

// Spend takes rows and bytes off the budget.
func (b *Budget) Spend(rows, bytes int) { b.Rows, b.Bytes = b.Rows-rows, b.Bytes-bytes }

// Compute takes operations off the budget.
func (b *Budget) Compute(operations int) { b.Work -= operations }

// decodedPerOperation is how many bytes of a signal are decoded, for expressions, in the time of an operation.
const decodedPerOperation = 5

// Decode takes off the budget the operations that the decoding of so many bytes takes.
func (b *Budget) Decode(bytes int) { b.Work -= bytes / decodedPerOperation }

// Spent reports whether any part of the budget is used up.
func (b *Budget) Spent() bool { return b.Rows <= 0 || b.Bytes <= 0 || b.Work <= 0 }
