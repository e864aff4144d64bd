package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/store/relational"
)

// sharedQueries are the statements that both databases share, by their slots.
var sharedQueries = func() []*query {
	all := make([]*query, len(relational.Statements))
	for i, s := range relational.Statements {
		all[i] = sql(s.Postgres)
	}
	return all
}()

var types = map[relational.Type]sqlType{
	relational.Int8: oidInt8, relational.Int4: oidInt4, relational.Int2: oidInt2, relational.Bool: oidBool,
	relational.Text: oidText, relational.JSON: oidJSON, relational.UUID: oidUUID, relational.Bytes: oidBytes,
}

// given returns the call for a shared one, with its parameters in a. ok is false if there is nothing to do.
func (s *Store) given(a *args, k *relational.Call) (c call, ok bool) {
	if in := k.Rows; in != nil {
		if in.N == 0 {
			return call{}, false
		}
		all := columns{make([]column, len(in.Types))}
		for i, of := range in.Types {
			all.all[i].begin(types[of])
			for n := range in.N {
				in.Put(n, i, cell{&all.all[i]})
			}
		}
		a.columns(&all)
	}
	k.Bind(param{a})
	c = call{params: a.params}
	if slot := k.Statement.Slot; slot >= 0 {
		c.q = sharedQueries[slot]
	} else {
		c.once = strings.ReplaceAll(k.Statement.Postgres, "{s}", s.schema)
	}
	if k.Read != nil {
		enough := false
		c.read = func(r *rows) error {
			if enough {
				return nil
			}
			err := k.Read(result{r})
			if enough = errors.Is(err, relational.ErrEnough); enough {
				return nil
			}
			return err
		}
	}
	return c, true
}

func (t *tx) Queue(_ context.Context, calls ...relational.Call) error {
	for i := range calls {
		if c, ok := t.s.given(t.args(), &calls[i]); ok {
			t.begin()
			t.calls = append(t.calls, c)
		}
	}
	return t.failed
}

func (t *tx) Run(ctx context.Context, calls ...relational.Call) error {
	if err := t.Queue(ctx, calls...); err != nil {
		return err
	}
	return t.flush(ctx)
}

func (s *Store) Run(ctx context.Context, calls ...relational.Call) error {
	all := s.givenAll(calls)
	if len(all) == 0 {
		return ctx.Err()
	}
	return s.read(ctx, all...)
}

func (s *Store) givenAll(calls []relational.Call) []call {
	all := make([]call, 0, len(calls))
	for i := range calls {
		if c, ok := s.given(new(args), &calls[i]); ok {
			all = append(all, c)
		}
	}
	return all
}

// snapshot runs calls in a connection's current snapshot. Each answer has a time limit.
type snapshot struct {
	s      *Store
	c      *conn
	answer time.Duration
}

// Run implements relational.Querier.
func (s snapshot) Run(ctx context.Context, calls ...relational.Call) error {
	_, err := s.c.within(ctx, s.answer, s.s.givenAll(calls))
	return err
}

// param is a parameter with one value.
type param struct{ *args }

func (p param) Null()          { p.null() }
func (p param) Int(v int64)    { p.int(v) }
func (p param) Bool(v bool)    { p.bool(v) }
func (p param) Text(v string)  { p.text(v) }
func (p param) Bytes(v []byte) { p.bytes(v) }

// cell is the next element of an array parameter.
type cell struct{ *column }

func (c cell) Null()          { c.null() }
func (c cell) Int(v int64)    { c.int(v) }
func (c cell) Bool(v bool)    { c.bool(v) }
func (c cell) Text(v string)  { c.text(v) }
func (c cell) Bytes(v []byte) { c.bytes(v) }

type result struct{ *rows }

func (r result) Int() int64   { return r.int() }
func (r result) Bool() bool   { return r.bool() }
func (r result) Peek() []byte { return r.peek() }
