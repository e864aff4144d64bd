package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/store/relational"
)

// sharedQueries are the statements that both databases share, by their slots.
var sharedQueries = func() []*query {
	all := make([]*query, len(relational.Statements))
	for i, s := range relational.Statements {
		all[i] = sql(s.SQLite)
	}
	return all
}()

func (t *tx) Run(ctx context.Context, calls ...relational.Call) error { return t.c.Run(ctx, calls...) }

func (t *tx) Queue(ctx context.Context, calls ...relational.Call) error { return t.Run(ctx, calls...) }

func (s *Store) Run(ctx context.Context, calls ...relational.Call) error {
	return s.read(ctx, func(c *conn) error { return c.Run(ctx, calls...) })
}

// Run implements relational.Querier, in the connection's current snapshot or transaction.
func (c *conn) Run(_ context.Context, calls ...relational.Call) error {
	for i := range calls {
		if err := c.answer(&calls[i]); err != nil {
			return err
		}
	}
	return nil
}

// answer runs a shared call, once for each row of its input. It also reads the rows after one that cannot be decoded.
func (c *conn) answer(k *relational.Call) error {
	times := 1
	if k.Rows != nil {
		times = k.Rows.N
	}
	var bad error
	for n := range times {
		s := c.shared(k.Statement)
		if k.Rows != nil {
			for i := range k.Rows.Types {
				k.Rows.Put(n, i, param{s})
			}
		}
		k.Bind(param{s})
		enough := false
		for !enough && s.next() {
			err := k.Read(result{s})
			if enough = errors.Is(err, relational.ErrEnough); !enough && bad == nil {
				bad = err
			}
		}
		err := taken(s.done())
		if k.Statement.Slot < 0 {
			s.free()
		}
		if err != nil {
			return err
		}
		if why := k.Statement.Each; why != "" && c.changes() != 1 {
			return fmt.Errorf("%w: %s", k.Statement.Lacks, why)
		}
		if enough {
			break
		}
	}
	return bad
}

func (c *conn) shared(s *relational.Statement) *stmt {
	if s.Slot < 0 {
		return c.prepare(s.SQLite)
	}
	return c.use(sharedQueries[s.Slot])
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

type param struct{ *stmt }

func (p param) Null()          { p.null() }
func (p param) Int(v int64)    { p.int(v) }
func (p param) Bool(v bool)    { p.int(truth(v)) }
func (p param) Text(v string)  { p.text(v) }
func (p param) Bytes(v []byte) { p.blob(v) }

type result struct{ *stmt }

func (r result) Int() int64   { return r.getInt() }
func (r result) Bool() bool   { return r.getInt() == 1 }
func (r result) Peek() []byte { return r.peekBlob() }
