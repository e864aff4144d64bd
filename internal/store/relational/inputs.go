package relational

import (
	"context"
	"strconv"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var inputs = Relation[store.InputPiece]{
	id("id", func(p *store.InputPiece) *flow.ID { return &p.Execution }),
	number("start", Int8, func(p *store.InputPiece) *int64 { return &p.Offset }),
	number("number", Int4, func(p *store.InputPiece) *int { return &p.Number }),
	truth("last", func(p *store.InputPiece) *bool { return &p.Last }),
	plain("data", Bytes, func(p *store.InputPiece) *[]byte { return &p.Data }, Args.Bytes, bytesOf),
}

// mostPieces is how many pieces of input are read at once.
const mostPieces = 1000

var (
	qAddInput = sql(func(d dialect) string { return inputs.insertOf(d, "inputs") })

	qFedInput = sql(func(d dialect) string {
		return `SELECT number, start + coalesce(octet_length(data), 0), last FROM {s}.inputs WHERE ` + d.of("$1") + ` ORDER BY start DESC LIMIT 1`
	})

	// Pieces follow one another without gaps, so a piece belongs to the page if it starts before the end of the page. The first piece may
	// start before the offset.
	qPieces = sql(func(d dialect) string {
		return `SELECT start, last, data FROM {s}.inputs WHERE ` + d.of("$1") + ` AND start < $2::bigint + ` + d.greatest("$3::bigint", "1") + `
			AND start >= (SELECT coalesce(max(start), 0) FROM {s}.inputs WHERE ` + d.of("$1") + ` AND start <= $2::bigint)
			ORDER BY start LIMIT ` + strconv.Itoa(mostPieces)
	})
)

// AddInput adds pieces of input.
func (t Tx) AddInput(ctx context.Context, all []store.InputPiece) error {
	if len(all) == 0 {
		return nil
	}
	return store.Failed(t.Queue(ctx, Call{Statement: qAddInput, Rows: inputs.input(all)}), "write input of %s", all[0].Execution)
}

func (t Tx) FedInput(ctx context.Context, id flow.ID) (flow.Input, error) {
	return Reader{t}.FedInput(ctx, id)
}

func (s Reader) FedInput(ctx context.Context, id flow.ID) (in flow.Input, err error) {
	err = s.Run(ctx, Call{Statement: qFedInput, Args: []any{id}, Read: func(r Row) error {
		in = flow.Input{Pieces: int(r.Int()), Size: r.Int(), Closed: r.Bool()}
		return nil
	}})
	return store.Result(in, err, "measure the input of %s", id)
}

func (t Tx) ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error) {
	return Reader{t}.ReadInput(ctx, id, from, limit)
}

func (s Reader) ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error) {
	err = s.Run(ctx, Call{Statement: qPieces, Args: []any{id, from, limit}, Read: func(r Row) error {
		start := r.Int()
		last = r.Bool()
		piece := r.Peek()
		data = append(data, piece[min(max(from-start, 0), int64(len(piece))):]...)
		return nil
	}})
	return data, last, store.Failed(err, "read the input of %s", id)
}
