package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// A wrong queue name is the worker's mistake and not an outage, and none of the worker's queues becomes known.
func TestSessionOfABadQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, bad := range []string{"", "GPU", "a b", "-a", "a_", strings.Repeat("q", 101)} {
		_, err := r.e.Open(r.ctx, handoff.Session{Name: "w", Queues: []string{"fine", bad}, Kinds: []string{"noop"}, Slots: 1})
		if !errors.Is(err, handoff.ErrBadCall) || !strings.Contains(err.Error(), fmt.Sprintf("queue %q: a queue's name is", bad[:min(len(bad), 100)])) {
			t.Errorf("queue %q: %v", bad, err)
		}
	}
	if known, err := r.e.catalog.KnowsQueue(r.ctx, "fine"); err != nil || known {
		t.Errorf("the queue beside a bad one is known: %v, %v", known, err)
	}
}

// Sessions add queues up to a bound; beyond it a worker serves only known ones: names are kept for ever, and lists read them all.
func TestSessionsOfManyQueues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		for i := range mostQueues - 4 { // the default queue counts, too
			if _, err := tx.AddName(ctx, store.QueueNames, fmt.Sprintf("q%d", i), r.clock.now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	open := func(queues ...string) error {
		_, err := r.e.Open(r.ctx, handoff.Session{Name: "w", Queues: queues, Kinds: []string{"code", "noop", "http", "llm", "webhook", "input", "output"}, Slots: 1})
		return err
	}
	if err := open("q1", "new-a", "new-a", "new-b"); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	if err := open("q1", "new-c", "new-d"); !errors.Is(err, handoff.ErrBadCall) || !strings.Contains(err.Error(), `queue "new-c" is new`) {
		t.Errorf("beyond the bound: %v", err)
	}
	if known, err := r.e.catalog.KnowsQueue(r.ctx, "new-c"); err != nil || known {
		t.Errorf("a queue of a session that was refused is known: %v, %v", known, err)
	}
	if err := open("new-c"); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := open("q1", "new-a", "new-c"); err != nil {
		t.Errorf("known ones at the bound: %v", err)
	}
	r.define("kind: queue\nname: declared\n")
	if err := open("declared"); err != nil {
		t.Errorf("one that a document declares: %v", err)
	}
}

// Sessions add languages up to a bound; beyond it a worker brings only known ones.
func TestSessionsOfManyLanguages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	open := func(languages ...string) error {
		kinds := []string{"code", "noop", "http", "llm", "webhook", "input", "output"}
		for _, name := range languages {
			kinds = append(kinds, flow.OfferLanguage(name))
		}
		_, err := r.e.Open(r.ctx, handoff.Session{Name: "w", Queues: []string{flow.DefaultQueue}, Kinds: kinds, Slots: 1})
		return err
	}
	all := make([]string, catalog.MostLanguages-1)
	for i := range all {
		all[i] = fmt.Sprintf("l%d", i)
	}
	if err := open(all...); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	if err := open("l1", "new-a", "new-b"); !errors.Is(err, handoff.ErrBadCall) || !strings.Contains(err.Error(), "there would be 1001 languages") {
		t.Errorf("beyond the bound: %v", err)
	}
	if known, err := r.e.languages.Knows(r.ctx, "new-a"); err != nil || known {
		t.Errorf("a language of a session that was refused is known: %v, %v", known, err)
	}
	if err := open("new-a", "new-a"); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := open("l1", "new-a"); err != nil {
		t.Errorf("known ones at the bound: %v", err)
	}
}

// namesCounted is a store that counts the transactions that add names, and refuses them for a while.
type namesCounted struct {
	store.Store
	refuse atomic.Bool
	added  atomic.Int64
}

func (s *namesCounted) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	adds := false
	err := s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &namesCountedTx{tx, s, &adds}) })
	if adds {
		s.added.Add(1)
	}
	return err
}

type namesCountedTx struct {
	store.Tx
	of   *namesCounted
	adds *bool
}

func (t *namesCountedTx) AddName(ctx context.Context, of store.NameKind, name string, at time.Time) (bool, error) {
	if t.of.refuse.Load() {
		return false, store.ErrUnavailable
	}
	*t.adds = true
	return t.Tx.AddName(ctx, of, name, at)
}

// The queues of a session are declared in one transaction: on a slow disk, 1,000 commits take longer than a worker waits. If they could not
// be stored, the next session stores them.
func TestQueuesOfASessionAreDeclaredTogether(t *testing.T) {
	t.Parallel()
	s := &namesCounted{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	session := handoff.Session{Name: "w", Kinds: []string{"code", "noop", "http", "llm", "webhook", "input", "output"}, Slots: 1}
	for i := range 1000 {
		session.Queues = append(session.Queues, fmt.Sprintf("q%d", i))
	}
	s.refuse.Store(true)
	if _, err := r.e.Open(r.ctx, session); !errors.Is(err, handoff.ErrUnavailable) {
		t.Fatalf("while the store takes no names: %v", err)
	}
	s.refuse.Store(false)
	before := s.added.Load()
	if _, err := r.e.Open(r.ctx, session); err != nil {
		t.Fatal(err)
	}
	if n := s.added.Load() - before; n != 1 {
		t.Errorf("%d transactions", n)
	}
	if known, err := r.store.HasName(r.ctx, store.QueueNames, "q999"); err != nil || !known {
		t.Errorf("a queue is not stored: %v", err)
	}
}

// Documents declare queues up to a bound, too.
func TestDocumentsOfManyQueues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		for i := range mostDeclared - 2 { // the default queue counts, too
			if _, err := tx.AddName(ctx, store.QueueNames, fmt.Sprintf("q%d", i), r.clock.now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(names ...string) error {
		var src strings.Builder
		for _, name := range names {
			src.WriteString("kind: queue\nname: " + name + "\n---\n")
		}
		defs, err := definition.Parse("q.yaml", []byte(strings.TrimSuffix(src.String(), "---\n")))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.e.Define(r.ctx, defs)
		return err
	}
	var refused definition.Problems
	if err := apply("q1", "new-a", "new-b"); !errors.As(err, &refused) || len(refused) != 1 || refused[0].Line != 4 || !strings.Contains(err.Error(), `queue "new-a" is new`) {
		t.Errorf("beyond the bound: %v", err)
	}
	if err := apply("q1", "new-a"); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := apply("q1", "new-a"); err != nil {
		t.Errorf("known ones at the bound: %v", err)
	}
}

// Unknown names are listed up to a number that can be looked up quickly, and the existing names are read once.
func TestManyUnknownNamesAreNotAllListed(t *testing.T) {
	t.Parallel()
	s := &looking{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	var src strings.Builder
	src.WriteString("name: w\ntasks:\n")
	for i := range 2 * mostUnknown {
		fmt.Fprintf(&src, "  t%d: {action: unknown%d, queue: lost%d}\n", i, i, i)
	}
	defs, err := definition.Parse("w.yaml", []byte(src.String()))
	if err != nil {
		t.Fatal(err)
	}
	var refused definition.Problems
	before := s.lists.Load()
	if err := r.e.Check(r.ctx, defs); !errors.As(err, &refused) || len(refused) != mostUnknown+1 || !strings.Contains(refused[mostUnknown].Message, "the rest is not listed") {
		t.Errorf("%d problems: %v", len(refused), err)
	}
	if n := s.lists.Load() - before; n != 1 {
		t.Errorf("the names were read %d times", n)
	}
	src.Reset()
	src.WriteString("name: w\ntasks:\n")
	for i := range 2 * mostUnknown {
		fmt.Fprintf(&src, "  t%d: {action: wait, with: {signal: unknown%d}}\n", i, i)
	}
	if defs, err = definition.Parse("w.yaml", []byte(src.String())); err != nil {
		t.Fatal(err)
	}
	if err := r.e.Check(r.ctx, defs); !errors.As(err, &refused) || len(refused) != mostUnknown {
		t.Errorf("%d problems of triggers: %v", len(refused), err)
	}
}
