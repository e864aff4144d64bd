package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/store"
)

// Queues are the names of all queues that are known, in order: those that a document or a server declares, that a worker
// has served once, and the default one.
func (e *Engine) Queues(ctx context.Context) ([]string, error) {
	const page = 1000
	names := []string{DefaultQueue}
	for after := ""; ; after = names[len(names)-1] {
		more, err := e.opts.Store.Names(ctx, store.QueueNames, after, page)
		if err != nil {
			return nil, fmt.Errorf("list queues: %w", err)
		}
		names = append(names, more...)
		if len(more) < page {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}

func unknownQueue(name string) string {
	return fmt.Sprintf("no worker has ever served queue %.100q, and nothing declares it", name)
}

// queueFix says how a queue becomes known.
func queueFix(name string) string {
	return fmt.Sprintf("apply a document that declares it (kind: queue, name: %.100[1]s), start a worker that serves it (pawl worker --queues %.100[1]s), or leave the queue out", name)
}
