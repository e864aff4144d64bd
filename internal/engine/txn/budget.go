package txn

// Budget bounds one transaction beyond its requests, or one pass of a loop.
type Budget struct {
	Rows  int // executions that are created, admitted or ended
	Bytes int // of their payloads
	Work  int // operations of users' expressions (definition.Work)
}

// WithRows is the budget with another number of rows.
func (b Budget) WithRows(n int) Budget {
	b.Rows = n
	return b
}

// Spend subtracts rows and bytes.
func (b *Budget) Spend(rows, bytes int) { b.Rows, b.Bytes = b.Rows-rows, b.Bytes-bytes }

// Compute subtracts operations.
func (b *Budget) Compute(operations int) { b.Work -= operations }

// decodedPerOperation is how many bytes of a signal are decoded, for expressions, in the time of one operation.
const decodedPerOperation = 5

// Decode subtracts the operations for decoding so many bytes.
func (b *Budget) Decode(bytes int) { b.Work -= bytes / decodedPerOperation }

// Spent reports whether any part of the budget is used up.
func (b *Budget) Spent() bool { return b.Rows <= 0 || b.Bytes <= 0 || b.Work <= 0 }
