package sqlite

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

var (
	qRelane = sql(`UPDATE live SET queue = ? WHERE n = ?`)

	qDetail = sql(`UPDATE executions SET detail = ? WHERE n = ?`)
)

// Relane implements store.Lines.
func (t *tx) Relane(_ context.Context, x *flow.Execution, lane string) error {
	n, err := t.mustNumber(x.ID)
	if err == nil {
		x.Queue = lane
		err = t.c.use(qRelane).text(lane).int(n).run()
	}
	if err == nil {
		err = t.c.use(qDetail).blob(t.c.enc.request(&x.Request)).int(n).run()
	}
	if err != nil {
		return fmt.Errorf("move execution %s to lane %q: %w", x.ID, lane, err)
	}
	return nil
}
