package sqlite

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

var (
	qReroute = sql(`UPDATE live SET queue = ? WHERE n = ?`)

	qDetail = sql(`UPDATE executions SET detail = ? WHERE n = ?`)
)

func (t *tx) Reroute(_ context.Context, x *flow.Execution, routingKey string) error {
	n, err := t.mustNumber(x.ID)
	if err == nil {
		x.Queue = routingKey
		err = t.c.use(qReroute).text(routingKey).int(n).run()
	}
	if err == nil {
		err = t.c.use(qDetail).blob(t.c.enc.request(&x.Request)).int(n).run()
	}
	if err != nil {
		return fmt.Errorf("move execution %s to routing key %q: %w", x.ID, routingKey, err)
	}
	return nil
}
