package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// loaded is what a transaction has read. The executions are locked until its end, and are in the state that the transaction has decided.
type loaded struct {
	drafts      map[flow.ID]*flow.Draft
	payloads    map[flow.ID]bool // executions whose payload has been read
	idempotency map[string]store.IdempotencyKey
	definitions map[string]catalog.Resolved
	uploads     map[blob.Sum]flow.ID // uploads that were looked up and exist
}

func newLoaded() loaded {
	return loaded{drafts: map[flow.ID]*flow.Draft{}, payloads: map[flow.ID]bool{}}
}

// expect makes room for about n executions, before the first is added.
func (l *loaded) expect(n int) {
	if len(l.drafts) == 0 {
		l.drafts = make(map[flow.ID]*flow.Draft, n)
	}
}

// Draft is an execution of the transaction; nil if it has not been loaded or does not exist.
func (t *transaction) Draft(id flow.ID) *flow.Draft { return t.loaded.drafts[id] }

func (t *transaction) add(d *flow.Draft) { t.loaded.drafts[d.ID] = d }

// Load brings executions into the transaction, without their payloads. The first call reads the workflows that the store expects as well.
func (t *transaction) Load(ctx context.Context, ids []flow.ID) error {
	missing := make([]flow.ID, 0, len(ids))
	for _, id := range ids {
		if t.Draft(id) == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 && len(t.workflows.expected) == 0 {
		return nil
	}
	xs, err := t.tx.Lock(ctx, missing, store.WithoutPayload)
	if err != nil {
		return fmt.Errorf("load executions: %w", err)
	}
	for _, x := range xs {
		t.add(flow.Load(x))
	}
	return nil
}

// adopt brings executions from a query into the transaction and returns their drafts; a draft that is already there keeps its decisions.
func (t *transaction) adopt(xs []*flow.Execution) []*flow.Draft {
	ds := make([]*flow.Draft, len(xs))
	for i, x := range xs {
		d := t.Draft(x.ID)
		if d == nil {
			d = flow.Load(x)
			t.add(d)
		}
		ds[i] = d
	}
	return ds
}

// loadIdempotency loads idempotency keys in addition to those that the requests wanted.
func (t *transaction) loadIdempotency(ctx context.Context, keys []string) error {
	keys = slices.DeleteFunc(keys, func(key string) bool { _, known := t.loaded.idempotency[key]; return known })
	if len(keys) == 0 {
		return nil
	}
	found, err := t.tx.Submitted(ctx, keys)
	if err != nil {
		return fmt.Errorf("load idempotency keys: %w", err)
	}
	if t.loaded.idempotency == nil {
		t.loaded.idempotency = map[string]store.IdempotencyKey{}
	}
	maps.Copy(t.loaded.idempotency, found)
	return nil
}

// needPayload loads the payload of an execution unless it has been read.
func (t *transaction) needPayload(ctx context.Context, d *flow.Draft) error {
	if d.New || t.loaded.payloads[d.ID] {
		return nil
	}
	return t.readPayloads(ctx, []flow.ID{d.ID})
}

// loadPayloads reads the payloads of drafts if the engine needs them for their kind at the start.
func (t *transaction) loadPayloads(ctx context.Context, ds []*flow.Draft) error {
	var ids []flow.ID
	for _, d := range ds {
		if d.Kind.ByEngine() && d.Kind != flow.KindWorkflow && !d.New && d.Payload() == nil {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return t.readPayloads(ctx, ids)
}

func (t *transaction) readPayloads(ctx context.Context, ids []flow.ID) error {
	xs, err := t.tx.Lock(ctx, ids, store.WithPayload)
	if err != nil {
		return fmt.Errorf("load payloads: %w", err)
	}
	for _, x := range xs {
		d := t.Draft(x.ID)
		d.Input, d.With = x.Input, x.With
		t.loaded.payloads[x.ID] = true
	}
	return nil
}

// lockUploads finds and locks existing uploads. They stay until the transaction ends.
func (t *transaction) lockUploads(ctx context.Context, sums []blob.Sum) error {
	var missing []blob.Sum
	for _, sum := range sums {
		if _, known := t.loaded.uploads[sum]; !known {
			missing = append(missing, sum)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	there, err := t.tx.LockUploads(ctx, missing)
	if err != nil {
		return fmt.Errorf("look for uploads: %w", err)
	}
	if t.loaded.uploads == nil {
		t.loaded.uploads = map[blob.Sum]flow.ID{}
	}
	maps.Copy(t.loaded.uploads, there)
	return nil
}

// definition is Catalog.Resolve. It caches the answer for this transaction unless the catalog has it permanently.
func (t *transaction) definition(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error) {
	if version != 0 {
		if d := t.e.catalog.Known(name, version); d != nil {
			return d, version, nil
		}
	}
	key := catalog.VersionKey(name, version) + " " + by
	r, have := t.loaded.definitions[key]
	if !have {
		var err error
		if r, err = t.e.catalog.Resolve(ctx, &t.tx, name, version, by); err != nil {
			return nil, 0, err
		}
		if t.loaded.definitions == nil {
			t.loaded.definitions = map[string]catalog.Resolved{}
		}
		t.loaded.definitions[key] = r
	}
	return r.Definition, r.Version, nil
}

// referenceUploads makes a new execution reference the existing uploads with these checksums.
func (t *transaction) referenceUploads(id flow.ID, sums []blob.Sum) {
	for _, sum := range sums {
		if upload, ok := t.loaded.uploads[sum]; ok {
			t.changes.referenceUpload(store.UploadReference{Execution: id, Upload: upload})
		}
	}
}

// rememberDefinitions caches the definitions that a committed transaction has read.
func (e *Engine) rememberDefinitions(t *transaction) {
	for _, r := range t.loaded.definitions {
		e.catalog.Remember(r)
	}
}
