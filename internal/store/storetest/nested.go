package storetest

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// nested checks that a decision cannot call the store outside its transaction: the call would wait for a second connection while the
// transaction holds its locks, and forever if it needs one of these locks.
func nested(b *bench) {
	x := b.get(b.ready(1))
	calls := map[string]func(context.Context) error{
		"Update": func(ctx context.Context) error {
			return b.s.Update(ctx, func(context.Context, store.Tx) error { return nil })
		},
		"Get":        func(ctx context.Context) error { _, err := b.s.Get(ctx, x.ID); return err },
		"Search":     func(ctx context.Context) error { _, err := b.s.Search(ctx, store.Filter{Limit: 1}); return err },
		"Events":     func(ctx context.Context) error { _, err := b.s.Events(ctx, x.ID, 0, 1); return err },
		"Ahead":      func(ctx context.Context) error { _, err := b.s.Ahead(ctx, x); return err },
		"KeyHolders": func(ctx context.Context) error { _, err := b.s.KeyHolders(ctx, "k", 1); return err },
		"Waiting": func(ctx context.Context) error {
			_, err := b.s.Waiting(ctx, store.WaitListQuery{Key: "k", Limit: 1})
			return err
		},
		"HeldBy": func(ctx context.Context) error { _, err := b.s.LeasedBy(ctx, []flow.ID{{1}}, 1, 1); return err },
		"Lines":  func(ctx context.Context) error { _, err := b.s.WaitLists(ctx, "", 1); return err },
		"Documents": func(ctx context.Context) error {
			_, err := b.s.Documents(ctx, store.OutputOf, []flow.ID{x.ID})
			return err
		},
		"Tally": func(ctx context.Context) error { _, _, err := b.s.Tally(ctx, store.Filter{}); return err },
		"Unnumbered": func(ctx context.Context) error {
			_, _, err := b.s.Unnumbered(ctx, store.Label{Name: "a"}, 1)
			return err
		},
		"Ended":       func(ctx context.Context) error { _, err := b.s.Ended(ctx, store.Label{Name: "a"}, 0, 1); return err },
		"Queues":      func(ctx context.Context) error { _, err := b.s.Queues(ctx); return err },
		"Keys":        func(ctx context.Context) error { _, err := b.s.Keys(ctx, 1); return err },
		"Survey":      func(ctx context.Context) error { _, err := b.s.Survey(ctx); return err },
		"Definition":  func(ctx context.Context) error { _, err := b.s.Definition(ctx, "d", 0); return err },
		"Latest":      func(ctx context.Context) error { _, err := b.s.Latest(ctx, []string{"d"}); return err },
		"Definitions": func(ctx context.Context) error { _, err := b.s.Definitions(ctx, "", 1); return err },
		"Given":       func(ctx context.Context) error { _, err := b.s.FedInput(ctx, x.ID); return err },
		"ReadInput":   func(ctx context.Context) error { _, _, err := b.s.ReadInput(ctx, x.ID, 0, 1); return err },
		"Marks": func(ctx context.Context) error {
			_, err := b.s.Marks(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: 1})
			return err
		},
		"Children": func(ctx context.Context) error {
			_, err := b.s.Children(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: 1}, "", -1, 1)
			return err
		},
		"Provisioning": func(ctx context.Context) error { _, err := b.s.Provisioning(ctx, flow.ID{}, flow.ID{}, 1); return err },
		"Removable": func(ctx context.Context) error {
			_, err := b.s.Removable(ctx, store.RemovableQuery{Before: b.now, Count: 1, Bytes: 1})
			return err
		},
		"ReadLogs": func(ctx context.Context) error {
			_, err := b.s.ReadLogs(ctx, store.LogQuery{Execution: x.ID, Limit: 1})
			return err
		},
		"RemoveLogs": func(ctx context.Context) error { return b.s.RemoveLogs(ctx, []flow.ID{x.ID}) },
		"AppendLogs": func(ctx context.Context) error {
			return b.s.AppendLogs(ctx, []flow.LogChunk{{Execution: x.ID, Attempt: 1, Seq: 1, Stream: "stdout", At: b.now, Data: []byte("x"), Size: 1}})
		},
		"Check": func(ctx context.Context) error { _, err := b.s.Check(ctx); return err },
	}
	b.update(func(ctx context.Context, t store.Tx) error {
		if _, err := t.Lock(ctx, []flow.ID{x.ID}, store.WithoutPayload); err != nil {
			return err
		}
		for name, call := range calls {
			wantErr(b, name+" within a transaction", call(ctx), store.ErrNested)
		}
		return nil
	})
	for name, call := range calls {
		if name == "Definition" {
			continue // the row does not exist
		}
		if err := call(b.ctx()); err != nil {
			b.Errorf("%s outside: %v", name, err)
		}
	}
}
