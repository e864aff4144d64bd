package inquiries

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// mostAskers is how many workflows with open questions are searched for ancestors.
const mostAskers = 10_000

// Asking returns the ids of open inquiries by execution. A workflow without its own gets the oldest inquiry beneath it,
// at any depth. The search goes from the asking executions up to their ancestors: open questions are few, while a
// workflow may have 10,000 children.
func (q *Inquiries) Asking(ctx context.Context, ids []flow.ID) (map[flow.ID]flow.ID, error) {
	found, err := q.Store.Asking(ctx, ids)
	if err != nil {
		return nil, err
	}
	without := map[flow.ID]bool{}
	for _, id := range ids {
		if found[id].IsZero() {
			without[id] = true
		}
	}
	if len(without) == 0 {
		return found, nil
	}
	at, err := q.Store.Askers(ctx, mostAskers)
	for err == nil && len(at) > 0 {
		at, err = q.above(ctx, at)
		for id, inquiry := range at {
			if without[id] {
				found[id] = older(found[id], inquiry)
			}
		}
	}
	return found, err
}

// above moves inquiries from executions to their parents; a parent of several gets the oldest.
func (q *Inquiries) above(ctx context.Context, at map[flow.ID]flow.ID) (map[flow.ID]flow.ID, error) {
	parents, err := q.parents.of(ctx, q.Store, slices.Collect(maps.Keys(at)))
	if err != nil {
		return nil, err
	}
	all := map[flow.ID]flow.ID{}
	for id, inquiry := range at {
		if p := parents[id]; !p.IsZero() {
			all[p] = older(all[p], inquiry)
		}
	}
	return all, nil
}

// older returns the smaller of two ids; the first may be zero.
func older(a, b flow.ID) flow.ID {
	if a.IsZero() || bytes.Compare(b[:], a[:]) < 0 {
		return b
	}
	return a
}

// parents caches the parents of asking executions and of their ancestors: a parent never changes.
type parents struct {
	mu    sync.Mutex
	known map[flow.ID]flow.ID
}

// of returns the parents of executions; zero for executions that have none or do not exist any more.
func (p *parents) of(ctx context.Context, r store.Reader, ids []flow.ID) (map[flow.ID]flow.ID, error) {
	found := make(map[flow.ID]flow.ID, len(ids))
	p.mu.Lock()
	missing := slices.DeleteFunc(ids, func(id flow.ID) bool {
		parent, ok := p.known[id]
		if ok {
			found[id] = parent
		}
		return ok
	})
	p.mu.Unlock()
	if len(missing) == 0 {
		return found, nil
	}
	for len(missing) > 0 {
		chunk := missing[:min(len(missing), 500)]
		read, err := store.List(ctx, r, store.Filter{IDs: chunk, Limit: len(chunk)})
		if err != nil {
			return nil, err
		}
		for _, x := range read {
			found[x.ID] = x.Parent
		}
		if len(read) == 0 { // removed meanwhile
			missing = missing[len(chunk):]
		}
		missing = slices.DeleteFunc(missing, func(id flow.ID) bool { _, ok := found[id]; return ok }) // a page may be full before its end
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) > 2*mostAskers {
		p.known = map[flow.ID]flow.ID{}
	}
	maps.Copy(p.known, found)
	return found, nil
}
