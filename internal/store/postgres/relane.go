package postgres

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store/row"
)

var qRelane = sql(`UPDATE {s}.live SET queue = $2, detail = $3 WHERE ` + is("id", "$1::uuid"))

// Relane implements store.Lines. The draft makes the commit notify other processes of the lane, as for any execution that
// comes into a queue.
func (t *tx) Relane(_ context.Context, x *flow.Execution, lane string) error {
	x.Queue = lane
	t.add(qRelane, t.args().id(x.ID).text(lane).bytes(row.AppendRequest(nil, &x.Request)), nil)
	delete(t.expectedEmpty.queues, lane)
	t.news.add(&flow.Draft{Execution: x})
	return nil
}
