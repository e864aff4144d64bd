package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// Retention pauses between two passes over ended executions for a tenth of the retention, but at least a second and at most a minute: an
	// execution that is to be kept for 30 s is gone after 33 s. While passes remove nothing, the pause grows to five minutes, but to no more
	// than that tenth.
	purgeEvery = time.Minute
	purgeOften = time.Second
	purgePart  = 10
	// A part of a pass is removed in one transaction. Its size depends on the duration of the last one: it doubles below purgeQuick and halves
	// above purgeSlow, within purgeLeast and purgeMost executions. 500 take about 20 ms on SQLite and 80 ms on PostgreSQL.
	purgeFirst = 200
	purgeLeast = 20
	purgeMost  = 2000
	purgeQuick = 25 * time.Millisecond
	purgeSlow  = 75 * time.Millisecond
	// purgeBytes bounds the content that one transaction removes: freeing 32 MB takes SQLite and PostgreSQL about 50 ms.
	purgeBytes = 32 << 20
	// After a part that took d the next one starts purgeRests·d later, at least purgeRest: commits of other requests go between.
	purgeRests = 2
	purgeRest  = 5 * time.Millisecond
)

// sweepFinished removes executions that ended longer ago than the retention.
func (e *Engine) sweepFinished(ctx context.Context) {
	if e.opts.Retention <= 0 {
		return
	}
	p := newPurger(e, e.opts.Retention)
	loop.Repeat(ctx, e.opts.Log, "removing old executions", purgePause(e.opts.Retention), nil, p.next)
}

// purgePause is the pause between two passes of a retention.
func purgePause(retention time.Duration) time.Duration {
	return min(max(retention/purgePart, purgeOften), purgeEvery)
}

// purger passes over the executions that retention may remove.
type purger struct {
	e         *Engine
	retention time.Duration
	after     flow.ID       // position of the pass
	size      int           // executions that the next transaction removes
	took      time.Duration // to remove the last part
	removed   bool          // this pass has removed something
	rest      *tidying
}

func newPurger(e *Engine, retention time.Duration) *purger {
	return &purger{e: e, retention: retention, size: purgeFirst, rest: newTidying(purgePause(retention), min(tidyAtMost, retention/purgePart))}
}

// next removes the next part and returns how long to wait before the one after it.
func (p *purger) next(ctx context.Context) (pause time.Duration, err error) {
	now, err := p.e.now(ctx)
	if err != nil {
		return 0, err
	}
	r, err := p.e.opts.Store.Removable(ctx, store.RemovableQuery{Before: now.Add(-p.retention), After: p.after, Count: p.size, Bytes: purgeBytes})
	if err == nil {
		err = p.remove(ctx, r.IDs)
	}
	if err != nil {
		p.after = flow.ID{}
		return 0, err
	}
	if p.after = r.After; !r.More {
		p.after = flow.ID{}
		p.e.retained.Store(time.Now().UnixMicro())
		removed := p.removed
		p.removed = false
		return p.e.jittered(p.rest.next(removed)), nil
	}
	return max(purgeRests*p.took, purgeRest), nil
}

// remove removes executions with all their data.
func (p *purger) remove(ctx context.Context, ids []flow.ID) error {
	if p.took = 0; len(ids) == 0 {
		return nil
	}
	// Blobs and logs first: a row without them is removed the next time, but blobs without a row would stay for ever.
	if blobs := p.e.opts.Blobs; blobs != nil {
		var prefixes []string
		for _, id := range ids {
			prefixes = append(prefixes, uploads.Prefixes(id)...)
		}
		if err := blobs.Remove(ctx, prefixes...); err != nil {
			return fmt.Errorf("remove blobs of %s and %d others: %w", ids[0], len(ids)-1, err)
		}
	}
	if err := p.e.opts.Store.RemoveLogs(ctx, ids); err != nil {
		return err
	}
	began := time.Now()
	err := p.removeRows(ctx, ids)
	if err != nil && fault.OfBatch(err) {
		return p.removeEach(ctx, ids, err)
	}
	switch p.took = time.Since(began); {
	case p.took < purgeQuick && len(ids) == p.size:
		p.size = min(2*p.size, purgeMost)
	case p.took > purgeSlow:
		p.size = max(p.size/2, purgeLeast)
	}
	return err
}

// removeRows removes executions in a transaction beside those of the committer, which it would delay.
func (p *purger) removeRows(ctx context.Context, ids []flow.ID) error {
	var gone []flow.ID
	err := p.e.update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		defer fault.Recovered(&err)
		gone, err = tx.Remove(ctx, ids)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove %s and %d others: %w", ids[0], len(ids)-1, err)
	}
	p.e.counters.purged.Add(int64(len(gone)))
	p.removed = p.removed || len(gone) > 0
	return nil
}

// removeEach removes executions one by one after their batch was refused: one that cannot be removed stays, with the workflows above it,
// and the pass continues.
func (p *purger) removeEach(ctx context.Context, ids []flow.ID, why error) error {
	p.e.opts.Log.Warn("removing old executions one by one", telemetry.Err, why)
	for _, id := range ids {
		err := p.removeRows(ctx, []flow.ID{id})
		if err == nil {
			continue
		}
		if !fault.OfBatch(err) || ctx.Err() != nil {
			return err
		}
		p.e.passOver(id, "an old execution cannot be removed: it stays", err)
	}
	return nil
}

// sweepUploads removes unused uploads from time to time.
func (e *Engine) sweepUploads(ctx context.Context) {
	if e.opts.Blobs == nil {
		return
	}
	e.tidy(ctx, "removing old uploads", e.uploads.Drop)
}
