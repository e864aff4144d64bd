package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// scripted is a store that fails as the file says, and records what each transaction wrote of the executions that the file names.
type scripted struct {
	store.Store
	mu     sync.Mutex
	names  map[flow.ID]string
	fault  string // refuses, locks, or loses: the failure of the next transactions
	of     []string
	until  map[string]bool // executions that have to be committed before another server frees the rows of locks
	freed  chan struct{}   // closed when they are
	passed []string
	awaken []string // executions whose waiting callers were woken by the end
}

// set sets the failure: "refuses a b" takes no rows of these, "locks a until b" holds the row of a until b is committed, "loses answer"
// commits the next transaction without an answer, and "works" ends the failure.
func (p *scripted) set(args []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.of = args[0], args[1:]
	if i := slices.Index(p.of, "until"); i >= 0 {
		p.until, p.freed = map[string]bool{}, make(chan struct{})
		for _, name := range p.of[i+1:] {
			p.until[name] = true
		}
		p.of = p.of[:i]
	}
}

func (p *scripted) name(id flow.ID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[id] = name
}

func (p *scripted) nameOf(id flow.ID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names[id]
}

func (p *scripted) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := p.passed
	p.passed = nil
	return passed
}

func (p *scripted) tell(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaken = append(p.awaken, name)
}

func (p *scripted) told() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.awaken, " ") + "\n"
}

func (p *scripted) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	var tx *scriptedTx
	err := p.Store.Update(ctx, func(ctx context.Context, t store.Tx) error {
		tx = &scriptedTx{Tx: t, of: p, wrote: map[string]bool{}}
		return decide(ctx, tx)
	})
	if tx == nil || len(tx.wrote) == 0 {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	verdict := "committed"
	switch {
	case err == nil && p.fault == "loses":
		p.fault, verdict, err = "", "committed, but the answer is lost", fmt.Errorf("commit: %w", store.ErrUnknown)
	case tx.verdict != "":
		verdict = tx.verdict
	case err != nil:
		verdict = "undone"
	}
	p.passed = append(p.passed, strings.Join(slices.Sorted(maps.Keys(tx.wrote)), " ")+": "+verdict)
	if err == nil && len(p.until) > 0 {
		maps.DeleteFunc(p.until, func(name string, _ bool) bool { return tx.wrote[name] })
		if len(p.until) == 0 {
			close(p.freed)
		}
	}
	return err
}

type scriptedTx struct {
	store.Tx
	of      *scripted
	wrote   map[string]bool
	verdict string
}

func (t *scriptedTx) Apply(ctx context.Context, d store.Delta) error {
	for _, x := range d.Drafts {
		if name := t.of.nameOf(x.ID); name != "" {
			t.wrote[name] = true
		}
	}
	t.of.mu.Lock()
	fault, locked, freed := t.of.fault, len(t.of.until) > 0, t.of.freed
	hit := slices.ContainsFunc(t.of.of, func(name string) bool { return t.wrote[name] })
	t.of.mu.Unlock()
	switch {
	case hit && fault == "refuses":
		t.verdict = "refused"
		return errPlanted
	case hit && fault == "locks" && locked && len(t.wrote) > 1: // because of the order of locks it may not wait
		t.verdict = "conflict"
		return store.ErrConflict
	case hit && fault == "locks":
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return t.Tx.Apply(ctx, d)
}
