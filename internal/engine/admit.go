package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/admission"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// admit schedules drafts that are due, or puts them into the wait list of their key. Drafts that are not due are left alone.
func (t *transaction) admit(ctx context.Context, drafts []*flow.Draft) error {
	var names []string
	for _, d := range drafts {
		if d.Key != "" {
			names = append(names, d.Key)
		}
		if metered(d) && d.Due(t.now) {
			names = append(names, meterLock(&d.Request))
		}
	}
	if err := t.lockKeys(ctx, names); err != nil {
		return err
	}
	if err := t.loadMeters(ctx, drafts); err != nil {
		return err
	}
	if err := t.prepareBegin(ctx, drafts); err != nil {
		return err
	}
	for _, d := range drafts {
		if !d.Due(t.now) {
			t.Changed(d)
			continue
		}
		if err := t.arrive(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// arrive decides about one draft that is due.
func (t *transaction) arrive(ctx context.Context, d *flow.Draft) error {
	defer t.Changed(d)
	if metered(d) {
		if goes, err := t.meter(d); err != nil || !goes {
			return err
		}
	}
	if d.Key == "" {
		return t.tried(d, func() error { return t.schedule(ctx, d) })
	}
	k := t.keys.all[d.Key]
	verdict := admission.Arrive(k.use.Holders, k.use.Waiting, d.KeyLimit, d.WhenFull)
	if d.TakenOut() {
		verdict = admission.Return(k.use.Holders, d.KeyLimit, d.WhenFull)
	}
	switch verdict {
	case admission.Admit:
		k.use.Holders++
		t.keys.granted[d.ID] = true
		return t.tried(d, func() error { return t.schedule(ctx, d) })
	case admission.Refuse:
		return d.Finish(flow.Cancelled, flow.Outcome{Error: &flow.Error{
			Code:    flow.CodeKeyFull,
			Message: fmt.Sprintf("concurrency key %q is full (limit %d) and when_full is cancel_new", d.Key, d.KeyLimit),
		}}, t.now, 0)
	case admission.Replaced:
		return d.Finish(flow.Cancelled, flow.Outcome{Error: &flow.Error{
			Code:    flow.CodeSuperseded,
			Message: fmt.Sprintf("its slot of key %q was given to another while it was put aside, and when_full is cancel_oldest", d.Key),
		}}, t.now, 0)
	case admission.Supersede:
		if err := t.supersede(ctx, d); err != nil {
			return err
		}
	}
	ticket, err := t.waitListTicket(ctx, d, k.use.Waiting)
	if err != nil {
		return err
	}
	k.use.Waiting++
	if k.use.Holders < d.KeyLimit {
		// The draft fits its own limit, but waits behind earlier executions, which may have lower limits. Its priority may put it before them, so
		// the wait list is served again.
		k.waitListDue = true
	}
	return d.Wait(ticket, t.now)
}

// supersede orders the oldest holder of a key to end, but only if the newcomer will get its slot: free slots and slots of holders that are
// ending already must be exactly as many as the executions that wait before the newcomer. With more, the newcomer gets a slot anyway; with
// fewer, another execution would get the slot. In both cases nothing is ended and the newcomer waits.
func (t *transaction) supersede(ctx context.Context, newcomer *flow.Draft) error {
	before := t.keys.all[newcomer.Key].use.Waiting
	if before >= store.WaitingCounted {
		return nil // no executions are counted beyond WaitingCounted
	}
	xs, err := t.tx.Holders(ctx, newcomer.Key, 1+before)
	if err != nil {
		return fmt.Errorf("find the key's holders: %w", err)
	}
	ending := 0
	var oldest *flow.Draft
	for _, d := range t.adopt(xs) {
		switch {
		case !d.Place.HoldsKey():
		case d.State.Cancel != nil:
			ending++
		case oldest == nil:
			oldest = d
		}
	}
	if oldest == nil || !admission.Supersedes(t.keys.all[newcomer.Key].use.Holders, before, ending, newcomer.KeyLimit) {
		return nil
	}
	if err := oldest.Cancel(flow.Cancelled, flow.CodeSuperseded, fmt.Sprintf("superseded by %s for key %q", newcomer.ID, newcomer.Key),
		t.now); err != nil {
		return fmt.Errorf("supersede: %w", err)
	}
	t.cancelled(oldest)
	return nil
}

// schedule puts an admitted draft into its queue and begins a draft that the engine runs itself. A draft of a paused action waits.
func (t *transaction) schedule(ctx context.Context, d *flow.Draft) error {
	ticket, err := t.ticket(ctx)
	if err != nil {
		return err
	}
	if suspended, err := t.mustSuspend(ctx, d); err != nil {
		return err
	} else if suspended {
		return t.suspend(ctx, d, ticket)
	}
	if err := d.Schedule(ticket, t.now); err != nil {
		return err
	}
	if d.Kind.ByEngine() {
		return t.e.engineKind(d.Kind).Begin(ctx, t, d)
	}
	t.dispatch.queued[d.Queue]++
	return nil
}

// admitWaitLists serves the wait lists of keys whose slots were freed, and reports whether any execution was admitted. In a transaction of
// callers, the wait list of a contended key is served by a follow-up.
func (t *transaction) admitWaitLists(ctx context.Context) (bool, error) {
	var freed []string
	for name, k := range t.keys.all {
		if k.waitListDue {
			k.waitListDue = false
			freed = append(freed, name)
		}
	}
	slices.Sort(freed)
	if freed = t.postponeContended(freed); len(freed) == 0 {
		return false, nil
	}
	uses, err := t.useKeys(ctx, freed)
	if err != nil {
		return false, fmt.Errorf("lock keys: %w", err)
	}
	any := false
	for _, name := range freed {
		k := t.keys.all[name]
		k.use, k.counted = uses[name], true
		n, err := t.admitWaitList(ctx, name, k)
		if err != nil {
			return false, err
		}
		any = any || n > 0
	}
	return any, nil
}

// postponeContended leaves wait lists of contended keys to follow-ups if callers would wait for the keys, and returns the other wait lists.
func (t *transaction) postponeContended(lines []string) []string {
	now := time.Now()
	if !t.leavesKeys || !t.e.batcher.contention.some(now) {
		return lines
	}
	return slices.DeleteFunc(lines, func(name string) bool {
		leave := !t.keys.all[name].counted && t.e.batcher.contention.has(now, name)
		if leave {
			t.keys.postponed = append(t.keys.postponed, name)
		}
		return leave
	})
}

// admitWaitList admits executions from the head of one wait list, each by its own limit, until the next one does not fit. Executions behind
// that one wait as well, even if their limits are higher: a wait list is served in order.
func (t *transaction) admitWaitList(ctx context.Context, name string, k *keyUse) (admitted int, err error) {
	counted := k.use.Waiting
	for k.use.Waiting > 0 {
		if t.budget.Spent() {
			t.keys.postponed = append(t.keys.postponed, name)
			break
		}
		xs, err := t.tx.WaitList(ctx, name, 1)
		if err != nil || len(xs) == 0 {
			return admitted, err
		}
		n := min(admission.Admissible(k.use.Holders, k.use.Waiting, xs[0].KeyLimit), t.budget.Rows)
		if n == 0 {
			break
		}
		if n > 1 {
			if xs, err = t.tx.WaitList(ctx, name, n); err != nil {
				return admitted, fmt.Errorf("read the key's wait list: %w", err)
			}
		}
		for i, x := range xs {
			if k.use.Holders+i >= x.KeyLimit {
				xs = xs[:i]
				break
			}
		}
		if err := t.admitHeads(ctx, k, xs); err != nil {
			return admitted, err
		}
		admitted += len(xs)
	}
	if counted >= store.WaitingCounted { // the wait list is longer than was counted
		k.counted = false
		if k.use.Waiting == 0 {
			t.keys.postponed = append(t.keys.postponed, name)
		}
	}
	return admitted, nil
}

// admitHeads schedules executions from the head of a wait list.
func (t *transaction) admitHeads(ctx context.Context, k *keyUse, xs []*flow.Execution) error {
	ds := t.adopt(xs)
	if err := t.prepareBegin(ctx, ds); err != nil {
		return err
	}
	t.budget.Spend(len(ds), 0)
	for _, d := range ds {
		k.use.Waiting--
		if err := t.tookTurn(ctx, d.Execution, k.use.Waiting); err != nil {
			return err
		}
		err := t.tried(d, func() error { return t.schedule(ctx, d) })
		if err != nil {
			return err
		}
		if d.Place.HoldsKey() {
			k.use.Holders++
			t.keys.granted[d.ID] = true
		}
		t.Changed(d)
	}
	return nil
}
