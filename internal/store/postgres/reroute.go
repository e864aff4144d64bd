package postgres

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store/row"
)

var qReroute = sql(`UPDATE {s}.live SET queue = $2, detail = $3 WHERE ` + is("id", "$1::uuid"))

// Reroute implements store.WaitLists. The draft makes the commit notify other processes of the routing key, as for any execution that
// enters a queue.
func (t *tx) Reroute(_ context.Context, x *flow.Execution, routingKey string) error {
	x.Queue = routingKey
	t.add(qReroute, t.args().id(x.ID).text(routingKey).bytes(row.AppendRequest(nil, &x.Request)), nil)
	delete(t.expectedEmpty.queues, routingKey)
	t.news.add(&flow.Draft{Execution: x})
	return nil
}
