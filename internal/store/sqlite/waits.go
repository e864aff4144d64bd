package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// waits are the columns of executions that wait for signals.
var waits = relation[*flow.Wait, *flow.Wait]{
	{"execution", func(s *stmt, x *flow.Wait) { s.id(x.Execution) }, func(s *stmt, x *flow.Wait) { x.Execution = s.getID() }},
	{"workflow", func(s *stmt, x *flow.Wait) { s.id(x.Workflow) }, func(s *stmt, x *flow.Wait) { x.Workflow = s.getID() }},
	{"attempt", func(s *stmt, x *flow.Wait) { s.int(int64(x.Attempt)) }, func(s *stmt, x *flow.Wait) { x.Attempt = int(s.getInt()) }},
	{"trigger", func(s *stmt, x *flow.Wait) { s.text(x.Trigger) }, func(s *stmt, x *flow.Wait) { x.Trigger = s.getText() }},
	{"subject", func(s *stmt, x *flow.Wait) { s.text(x.Subject) }, func(s *stmt, x *flow.Wait) { x.Subject = s.getText() }},
	{"since", func(s *stmt, x *flow.Wait) { s.time(x.Since) }, func(s *stmt, x *flow.Wait) { x.Since = s.getTime() }},
	{"looked", func(s *stmt, x *flow.Wait) { s.int(truth(x.Looked)) }, func(s *stmt, x *flow.Wait) { x.Looked = s.getInt() == 1 }},
	{"signal", func(s *stmt, x *flow.Wait) { s.intOrNull(x.Signal) }, func(s *stmt, x *flow.Wait) { x.Signal = s.getInt() }},
	{"detail", putWaitDetail, func(s *stmt, x *flow.Wait) { row.DecodeWaitDetail(x, s.peekBlob()) }},
}

func putWaitDetail(s *stmt, w *flow.Wait) {
	detail, err := row.WaitDetail(&w.WaitDetail)
	if err != nil {
		s.fail(err)
	}
	s.text(string(detail))
}

var (
	qWait          = sql(`SELECT ` + waits.names("") + ` FROM waits WHERE execution = ?`)
	qUnlookedWaits = sql(`SELECT ` + waits.names("") + ` FROM waits w WHERE looked = 0 AND signal IS NULL AND execution > ? AND ` + notAside(store.AsideLooking, "w.execution") + `
		ORDER BY execution LIMIT ?`)
	qOpenWaits  = sql(`SELECT ` + waits.names("") + ` FROM waits WHERE trigger = ? AND subject = ? AND signal IS NULL AND execution > ? ORDER BY execution LIMIT ?`)
	qPutWait    = sql(waits.insert("waits") + ` ON CONFLICT (execution) DO UPDATE SET ` + waits[1:].excluded())
	qDeleteWait = sql(`DELETE FROM waits WHERE execution = ?`)
	qTaken      = sql(`SELECT signal FROM waits WHERE workflow = ? AND attempt = ? AND signal = ?`)

	qPutUnmet     = sql(`INSERT OR IGNORE INTO unmet (signal) VALUES (?)`)
	qDropUnmet    = sql(`DELETE FROM unmet WHERE signal = ?`)
	qUnmetSignals = sql(`SELECT ` + signals.names("") + ` FROM unmet u CROSS JOIN signals s ON s.n = u.signal WHERE u.signal > ? AND ` + notAside(store.AsideMeeting, "s.id") + `
		ORDER BY u.signal LIMIT ?`)
)

// WaitsOf implements store.Waits.
func (t *tx) WaitsOf(_ context.Context, executions []flow.ID) ([]flow.Wait, error) {
	var all []flow.Wait
	for _, id := range executions {
		found, err := rowsOf(t.c.use(qWait).id(id), waits)
		if err != nil {
			return nil, fmt.Errorf("look for the wait of %s: %w", id, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// Taken implements store.Waits.
func (t *tx) Taken(_ context.Context, of store.WorkflowAttempt, signals []int64) (taken []int64, err error) {
	for _, n := range signals {
		found, err := t.c.use(qTaken).id(of.ID).int(int64(of.Attempt)).int(n).numbers()
		if err != nil {
			return nil, fmt.Errorf("look who took signal %d: %w", n, err)
		}
		taken = append(taken, found...)
	}
	return taken, nil
}

// putWaits writes waits, and deletes those of other executions.
func (t *tx) putWaits(d *store.Delta) error {
	for i := range d.Waits {
		w := &d.Waits[i]
		if err := taken(waits.bind(t.c.use(qPutWait), w).run()); err != nil {
			return fmt.Errorf("write the wait of %s: %w", w.Execution, err)
		}
	}
	for _, id := range d.DroppedWaits {
		if err := t.c.use(qDeleteWait).id(id).run(); err != nil {
			return fmt.Errorf("delete the wait of %s: %w", id, err)
		}
	}
	return nil
}

// putUnmet notes about which signals open waits must still be asked, and about which they have been.
func (t *tx) putUnmet(d *store.Delta) error {
	if err := t.eachUnmet(qPutUnmet, d.Unmet); err != nil {
		return err
	}
	return t.eachUnmet(qDropUnmet, d.Met)
}

func (t *tx) eachUnmet(q *query, signals []int64) error {
	for _, n := range signals {
		if err := t.c.use(q).int(n).run(); err != nil {
			return fmt.Errorf("note that signal %d has met those who wait: %w", n, err)
		}
	}
	return nil
}

// Wait implements store.WaitReader.
func (s *Store) Wait(ctx context.Context, execution flow.ID) (w flow.Wait, err error) {
	return one(ctx, s, func(c *conn) ([]flow.Wait, error) { return rowsOf(c.use(qWait).id(execution), waits) }, "the wait of %s", execution)
}

// UnlookedWaits implements store.WaitReader.
func (s *Store) UnlookedWaits(ctx context.Context, now time.Time, after flow.ID, n int) ([]flow.Wait, error) {
	return s.readWaits(ctx, func(c *conn) *stmt { return c.use(qUnlookedWaits).blob(after[:]).int(row.Micros(now)).int(int64(n)) })
}

// OpenWaits implements store.WaitReader.
func (s *Store) OpenWaits(ctx context.Context, trigger, subject string, after flow.ID, n int) ([]flow.Wait, error) {
	return s.readWaits(ctx, func(c *conn) *stmt { return c.use(qOpenWaits).text(trigger).text(subject).blob(after[:]).int(int64(n)) })
}

func (s *Store) readWaits(ctx context.Context, bind func(*conn) *stmt) (all []flow.Wait, err error) {
	return list(ctx, s, func(c *conn) ([]flow.Wait, error) { return rowsOf(bind(c), waits) }, "read waits")
}

// UnmetSignals implements store.WaitReader.
func (s *Store) UnmetSignals(ctx context.Context, now time.Time, after int64, n int) (all []flow.Signal, err error) {
	return list(ctx, s, func(c *conn) ([]flow.Signal, error) {
		return c.use(qUnmetSignals).int(after).int(row.Micros(now)).int(int64(n)).signals()
	}, "look for signals that have met no waits")
}
