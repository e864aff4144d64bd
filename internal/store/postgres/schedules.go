package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/store"
)

var (
	qLockSchedules = sql(`SELECT name FROM {s}.schedules WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE`)
	qAreSchedules  = sql(`SELECT 1 FROM {s}.schedules WHERE name = ANY ($1::text[]) LIMIT 1`)
)

// LockSchedules implements store.Schedules. If the order does not allow waiting for the schedules now, it only tries.
func (t *tx) LockSchedules(ctx context.Context, names []string, pass bool) ([]store.Schedule, error) {
	names = unique(names)
	fresh := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return t.schedules[name] })
	wait := !pass && (len(fresh) == 0 || t.mayWaitForSchedules(fresh))
	if !pass {
		t.asked = append(t.asked, locks{schedules: names})
	}
	all, err := t.Tx.LockSchedules(ctx, names, !wait)
	if err != nil {
		return nil, err
	}
	for i := range all {
		t.lockedSchedule(all[i].Name)
	}
	if pass || wait || len(all) == len(names) {
		return all, nil
	}
	missing := slices.DeleteFunc(names, func(name string) bool { return t.schedules[name] })
	busy := false
	err = t.ask(ctx, qAreSchedules, t.args().texts(missing), func(*rows) error {
		busy = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lock %d schedules: %w", len(names), err)
	}
	if busy {
		return nil, t.giveUp()
	}
	return all, nil
}
