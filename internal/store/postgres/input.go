package postgres

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var inputs = relation[*store.InputPiece, none]{
	{"id", oidUUID, func(c *column, p *store.InputPiece) { c.id(p.Execution) }, nil},
	{"start", oidInt8, func(c *column, p *store.InputPiece) { c.int(p.Offset) }, nil},
	{"number", oidInt4, func(c *column, p *store.InputPiece) { c.int(int64(p.Number)) }, nil},
	{"last", oidBool, func(c *column, p *store.InputPiece) { c.bool(p.Last) }, nil},
	{"data", oidBytes, func(c *column, p *store.InputPiece) { c.bytes(p.Data) }, nil},
}

var (
	qInsertPieces = sql(inputs.insert("inputs"))

	qGiven = sql(`SELECT number, start + octet_length(data), last FROM {s}.inputs WHERE id = $1 ORDER BY start DESC LIMIT 1`)

	// Pieces follow one another without a gap, so a piece belongs to the page if it starts before the end of the page. The
	// first piece may start before the offset.
	qPieces = sql(`SELECT start, last, data FROM {s}.inputs WHERE id = $1 AND start < $2::bigint + greatest($3::bigint, 1)
		AND start >= (SELECT coalesce(max(start), 0) FROM {s}.inputs WHERE id = $1 AND start <= $2::bigint) ORDER BY start LIMIT $4`)
)

// feed queues the statement that adds pieces of input.
func (t *tx) feed(pieces []store.InputPiece) {
	if len(pieces) == 0 {
		return
	}
	var all columns
	inputs.begin(&all)
	for i := range pieces {
		p := &pieces[i]
		inputs.add(&all, p)
		t.news.merge(news{executions: []flow.ID{p.Execution}})
	}
	t.put(qInsertPieces, &all)
}

// pieces reads rows of qPieces and appends their data, from an offset on.
func pieces(from int64, data *[]byte, last *bool) func(*rows) error {
	return func(r *rows) error {
		start := r.int()
		*last = r.bool()
		piece := r.peek()
		*data = append(*data, piece[min(max(from-start, 0), int64(len(piece))):]...)
		return nil
	}
}

func readGiven(in *flow.Input) func(*rows) error {
	return func(r *rows) error {
		*in = flow.Input{Pieces: int(r.int()), Size: r.int(), Closed: r.bool()}
		return nil
	}
}

// Given implements store.Inputs.
func (t *tx) Given(ctx context.Context, id flow.ID) (in flow.Input, err error) {
	err = t.ask(ctx, qGiven, t.args().id(id), readGiven(&in))
	return store.Result(in, err, "measure the input of %s", id)
}

// ReadInput implements store.Inputs.
func (t *tx) ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error) {
	err = t.ask(ctx, qPieces, t.args().id(id).int(from).int(limit).int(mostChunks), pieces(from, &data, &last))
	return data, last, store.Failed(err, "read the input of %s", id)
}

// Given implements store.Inputs.
func (s *Store) Given(ctx context.Context, id flow.ID) (in flow.Input, err error) {
	err = s.read(ctx, call{q: qGiven, params: new(args).id(id).params, read: readGiven(&in)})
	return store.Result(in, err, "measure the input of %s", id)
}

// ReadInput implements store.Inputs.
func (s *Store) ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error) {
	k := call{q: qPieces, params: new(args).id(id).int(from).int(limit).int(mostChunks).params, read: pieces(from, &data, &last)}
	err = s.read(ctx, k)
	return data, last, store.Failed(err, "read the input of %s", id)
}
