package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// queuePrefix is what the names of queues begin with among the definitions. A definition's own name has no colon.
const queuePrefix = queueKind + ":"

// queueRow is how a queue is kept. It is the same for a queue that a document declares and one that a worker serves, so
// that neither makes a new version of the other's.
func queueRow(name string, now time.Time) store.Definition {
	return store.Definition{Name: queuePrefix + name, Kind: queueKind, Document: []byte("{}"), CreatedAt: now}
}

// Queues are the names of all queues that are known, in order: those that a document or a server declares, that a worker
// has served once, and the default one.
func (e *Engine) Queues(ctx context.Context) ([]string, error) {
	const page = 1000
	names := []string{DefaultQueue}
	for after := queuePrefix; ; {
		rows, err := e.opts.Store.Definitions(ctx, after, page)
		if err != nil {
			return nil, fmt.Errorf("list queues: %w", err)
		}
		for _, d := range rows {
			name, is := strings.CutPrefix(d.Name, queuePrefix)
			if !is { // they come in the order of names
				rows = nil
				break
			}
			names, after = append(names, name), d.Name
		}
		if len(rows) < page {
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
