package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/store"
)

// scheduleKind marks schedules among the definitions, schedulePrefix their names.
const (
	scheduleKind   = "schedule"
	schedulePrefix = scheduleKind + ":"
)

// ScheduleLabel is the label of executions that a schedule starts; its value is the schedule's name.
const ScheduleLabel = "pawl.schedule"

// schedulesKept is how many documents of schedules are cached. A document takes a few KB, and reading one again takes half as long as a
// tick.
const schedulesKept = 20_000

// schedules caches the documents of schedules that were looked up or applied.
type schedules struct {
	mu   sync.Mutex
	all  map[string]*definition.Definition // "name@version"
	wake chan struct{}                     // capacity 1: a schedule may be due earlier than was known

	costly loop.Costly                     // versions of schedules
	turns  loop.TurnQueue[string, *firing] // schedules by name, with the plan whose ticks are being started; nil: it must be planned
}

func newSchedules() *schedules {
	return &schedules{all: map[string]*definition.Definition{}, wake: make(chan struct{}, 1)}
}

func (s *schedules) changed() { loop.Wake(s.wake) }

// schedule loads a version of a schedule's document; 0 is the latest.
func (e *Engine) schedule(ctx context.Context, name string, version int) (*definition.Definition, error) {
	key := catalog.VersionKey(name, version)
	d := e.schedules.known(key)
	if d != nil {
		return d, nil
	}
	row, err := e.opts.Store.Definition(ctx, schedulePrefix+name, version)
	if err != nil {
		return nil, fmt.Errorf("load schedule %q: %w", name, err)
	}
	if d, err = scheduleOf(&row); err != nil || version == 0 {
		return d, err
	}
	e.schedules.keep(key, d)
	return d, nil
}

// scheduleDocument loads a version of a schedule's document. A document that the transaction reads may be its own, and is cached after the
// commit.
func (t *transaction) scheduleDocument(ctx context.Context, name string, version int) (*definition.Definition, error) {
	key := catalog.VersionKey(name, version)
	if d := t.e.schedules.known(key); d != nil {
		return d, nil
	}
	if read := txn.MadePart[readSchedules](t); read != nil && (*read)[key] != nil {
		return (*read)[key], nil
	}
	row, err := t.tx.Definition(ctx, schedulePrefix+name, version)
	if err != nil {
		return nil, fmt.Errorf("load schedule %q: %w", name, err)
	}
	d, err := scheduleOf(&row)
	if err != nil {
		return nil, err
	}
	t.keepSchedule(key, d)
	return d, nil
}

type readSchedules map[string]*definition.Definition

// keepSchedule caches a document after the transaction's commit.
func (t *transaction) keepSchedule(key string, d *definition.Definition) {
	read := txn.Part[readSchedules](t)
	if *read == nil {
		*read = readSchedules{}
	}
	(*read)[key] = d
}

func scheduleOf(row *store.Definition) (*definition.Definition, error) {
	d, err := definition.Decode(row.Document)
	if err == nil && d.Schedule == nil {
		err = errors.New("it is not a schedule")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", catalog.VersionKey(row.Name, row.Version), err)
	}
	return d, nil
}

// known is a cached version of a document, or nil.
func (s *schedules) known(key string) *definition.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[key]
}

// keep caches a document. If the cache is full, it replaces any other: schedules come in turn, so dropping all of them, or the oldest,
// would drop those that are due next.
func (s *schedules) keep(key string, d *definition.Definition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.all[key]; !known && len(s.all) >= schedulesKept {
		for other := range s.all {
			delete(s.all, other)
			break
		}
	}
	s.all[key] = d
}

// Scheduled is a schedule with its document.
type Scheduled struct {
	store.Schedule
	Document *definition.Definition
}

// scheduleDocuments are the documents of schedules, by name. Unknown ones are read together, and left out if they cannot be read or another
// version was applied meanwhile.
func (e *Engine) scheduleDocuments(ctx context.Context, rows []store.Schedule) (map[string]*definition.Definition, error) {
	all := make(map[string]*definition.Definition, len(rows))
	versions := map[string]int{}
	for i := range rows {
		k := &rows[i]
		if d := e.schedules.known(catalog.VersionKey(k.Name, k.Version)); d != nil {
			all[k.Name] = d
		} else {
			versions[schedulePrefix+k.Name] = k.Version
		}
	}
	if len(versions) == 0 {
		return all, nil
	}
	documents, err := e.opts.Store.Latest(ctx, slices.Collect(maps.Keys(versions)))
	if err != nil {
		return nil, fmt.Errorf("load schedules: %w", err)
	}
	for i := range documents {
		row := &documents[i]
		if row.Version != versions[row.Name] {
			continue
		}
		if d, err := scheduleOf(row); err == nil {
			all[d.Name] = d
			e.schedules.keep(catalog.VersionKey(d.Name, row.Version), d)
		}
	}
	return all, nil
}

// Schedules returns up to n schedules after a name, in order, in two reads.
func (e *Engine) Schedules(ctx context.Context, after string, n int) ([]Scheduled, error) {
	rows, err := e.opts.Store.Schedules(ctx, after, n)
	if err != nil {
		return nil, err
	}
	documents, err := e.scheduleDocuments(ctx, rows)
	if err != nil {
		return nil, err
	}
	all := make([]Scheduled, len(rows))
	for i, k := range rows {
		all[i] = Scheduled{k, documents[k.Name]}
		if all[i].Document == nil {
			if all[i].Document, err = e.schedule(ctx, k.Name, k.Version); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// define stores a definition. A queue always has one version.
func (t *transaction) define(ctx context.Context, d *definition.Definition) (version int, created bool, err error) {
	name := d.Name
	switch d.Kind {
	case definition.KindQueue:
		created, err = t.tx.AddName(ctx, store.QueueNames, d.Name, t.now)
		return 1, created, err
	case definition.KindSchedule, definition.KindTrigger, definition.KindRule, definition.KindWebhook:
		name = string(d.Kind) + ":" + name
	}
	row := store.Definition{Name: name, Kind: string(d.Kind), Document: d.Canonical(), CreatedAt: t.now}
	if _, err := hex.Decode(row.Hash[:], []byte(d.Hash())); err != nil {
		return 0, false, fmt.Errorf("read its hash: %w", err)
	}
	return t.tx.Define(ctx, row)
}

// errScheduleMoved means that a transaction found a schedule changed since it was planned.
var errScheduleMoved = errors.New("the schedule was decided about meanwhile")

// plansAgain is how often a change of a schedule is planned: a schedule of every second is decided about once a second, and a plan takes
// less.
const plansAgain = 20

// unmoved repeats decide, which plans and makes a change, until no other transaction comes between.
func unmoved(ctx context.Context, decide func() error) (err error) {
	for range plansAgain {
		if err = decide(); !errors.Is(err, errScheduleMoved) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// passing is the plan for a schedule's nominal times when it is steered or edited. Like the plans of ticks, it is made before the
// transaction: a search for times can take 0.1 s, in which no other request would be committed.
type passing struct {
	was    store.Schedule // the schedule as it was when this was planned
	missed []schedule.Missed
	next   time.Time
}

// stands reports whether a schedule has not changed since.
func (p *passing) stands(k *store.Schedule) bool {
	return k.Version == p.was.Version && k.Next.Equal(p.was.Next) && k.PausedAt.Equal(p.was.PausedAt)
}

// planBeginnings plans the schedules among definitions, by name, for when these are applied. Undecided times of the old version that have
// passed are missed: no time is decided about twice, and none is dropped.
func (e *Engine) planBeginnings(ctx context.Context, defs []*definition.Definition) (map[string]*passing, error) {
	var all map[string]*passing
	var now time.Time
	for _, d := range defs {
		if d.Kind != definition.KindSchedule {
			continue
		}
		if all == nil {
			var err error
			if now, err = e.now(ctx); err != nil {
				return nil, err
			}
			all = map[string]*passing{}
		}
		p := &passing{}
		k, before, err := e.Schedule(ctx, d.Name)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			p.was = k
			if why := schedule.MissedReplaced; !k.Next.IsZero() {
				if !k.PausedAt.IsZero() {
					why = schedule.MissedPaused
				}
				p.missed, _ = before.Schedule.Passed(k.Next, now, why)
			}
		}
		p.next, _ = d.Schedule.Next(now)
		all[d.Name] = p
	}
	return all, nil
}

// beginSchedule makes a schedule use a new version of its document.
func (t *transaction) beginSchedule(ctx context.Context, d *definition.Definition, version int, p *passing) error {
	locked, err := t.tx.LockSchedules(ctx, []string{d.Name}, false)
	if err != nil {
		return err
	}
	k := store.Schedule{Name: d.Name}
	if len(locked) > 0 {
		k = locked[0]
	}
	switch {
	case k.Version == version:
		return nil
	case !p.stands(&k):
		return errScheduleMoved
	}
	t.putTicks(missedTicks(d.Name, p.missed, t.now)...)
	k.Version, k.CountedFrom, k.Next = version, t.now, p.next
	if d.Schedule.Paused && k.PausedAt.IsZero() {
		k.PausedAt, k.Reason = t.now, "its document says paused: true"
	}
	k.Due = dueOf(d, &k)
	t.keepSchedule(catalog.VersionKey(d.Name, version), d)
	t.putSchedule(k)
	return nil
}

func (t *transaction) putSchedule(k store.Schedule) {
	rows := t.changes.add()
	rows.Schedules.Written = append(rows.Schedules.Written, k)
}

func (t *transaction) putTicks(all ...store.Tick) {
	rows := t.changes.add()
	rows.Schedules.Ticks = append(rows.Schedules.Ticks, all...)
}

// dueOf is when the next decision about a schedule is due; zero: never.
func dueOf(d *definition.Definition, k *store.Schedule) time.Time {
	if k.Next.IsZero() || !k.PausedAt.IsZero() {
		return time.Time{}
	}
	return d.Schedule.Due(k.Name, k.Next)
}

func missedTicks(name string, all []schedule.Missed, now time.Time) []store.Tick {
	ticks := make([]store.Tick, 0, len(all))
	for _, m := range all {
		ticks = append(ticks, store.Tick{Schedule: name, Nominal: m.First, Last: m.Last, Count: m.Count, At: now, Why: m.Why, Message: m.Message})
	}
	return ticks
}

func (e *Engine) steer(ctx context.Context, name string, change func(context.Context, *transaction, *definition.Definition, *store.Schedule) error) (store.Schedule, error) {
	if _, _, err := e.Schedule(ctx, name); err != nil {
		return store.Schedule{}, err
	}
	k, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (k store.Schedule, err error) {
		locked, err := t.tx.LockSchedules(ctx, []string{name}, false)
		if err != nil {
			return k, err
		}
		if len(locked) == 0 {
			return k, fmt.Errorf("schedule %q: %w", name, store.ErrNotFound)
		}
		k = locked[0]
		d, err := t.scheduleDocument(ctx, name, k.Version)
		if err != nil {
			return k, err
		}
		if err := change(ctx, t, d, &k); err != nil {
			return k, err
		}
		k.Due = dueOf(d, &k)
		t.putSchedule(k)
		return k, nil
	})
	if err == nil {
		e.schedules.changed()
	}
	return k, err
}

// PauseSchedule stops a schedule until it is resumed. A schedule that is paused already keeps its reason.
func (e *Engine) PauseSchedule(ctx context.Context, name, reason string) (store.Schedule, error) {
	if err := fault.CheckText("reason", reason, fault.ReasonLimit, "shorten it"); err != nil {
		return store.Schedule{}, err
	}
	return e.steer(ctx, name, func(_ context.Context, t *transaction, _ *definition.Definition, k *store.Schedule) error {
		if k.PausedAt.IsZero() {
			k.PausedAt, k.Reason = t.now, reason
		}
		return nil
	})
}

// ResumeSchedule lets a schedule fire again. Times that have passed meanwhile are missed, or follow the policy of catching up.
func (e *Engine) ResumeSchedule(ctx context.Context, name string, catchUp bool) (resumed store.Schedule, err error) {
	err = unmoved(ctx, func() (err error) {
		resumed, err = e.resumeSchedule(ctx, name, catchUp)
		return err
	})
	return resumed, err
}

func (e *Engine) resumeSchedule(ctx context.Context, name string, catchUp bool) (store.Schedule, error) {
	was, d, err := e.Schedule(ctx, name)
	if err != nil {
		return was, err
	}
	p := passing{was: was, next: was.Next}
	if !was.PausedAt.IsZero() && !catchUp && !was.Next.IsZero() {
		now, err := e.now(ctx)
		if err != nil {
			return was, err
		}
		p.missed, p.next = d.Schedule.Passed(was.Next, now, schedule.MissedPaused)
	}
	return e.steer(ctx, name, func(ctx context.Context, t *transaction, _ *definition.Definition, k *store.Schedule) error {
		switch {
		case k.PausedAt.IsZero():
			return nil
		case !p.stands(k):
			return errScheduleMoved
		}
		k.PausedAt, k.Reason, k.CountedFrom, k.Next = time.Time{}, "", t.now, p.next
		t.putTicks(missedTicks(k.Name, p.missed, t.now)...)
		return nil
	})
}

// FireSchedule starts an execution as a tick would now, even if others run or the schedule is paused.
func (e *Engine) FireSchedule(ctx context.Context, name string) (flow.ID, error) {
	k, d, err := e.Schedule(ctx, name)
	if err != nil {
		return flow.ID{}, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return flow.ID{}, err
	}
	w := definition.WorkWithin(definition.SharedWork)
	s := e.planStart(ctx, d, schedule.Fire{Nominal: now, Why: schedule.FiredByHand}, k.Last, w)
	if s.err != nil {
		return flow.ID{}, s.err
	}
	if scheduleKey(d) != "" { // it does not wait for the ticks
		s.request.Key, s.request.KeyLimit, s.request.WhenFull = "", 0, ""
	}
	refusal, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (refusal, err error) {
		if refusal, err = t.missingUploads(ctx, s); err != nil || refusal != nil {
			return refusal, err
		}
		if err := t.submitPlanned(ctx, s); err != nil {
			return nil, err
		}
		t.putTicks(store.Tick{Schedule: name, Nominal: now, Tag: s.id.String(), Last: now, Count: 1, Execution: s.id, At: t.now, Why: s.fire.Why})
		return nil, nil
	})
	if err == nil {
		err = refusal
	}
	if err != nil {
		return flow.ID{}, err
	}
	e.counters.submitted.Add(1)
	return s.id, nil
}

// Schedule returns a schedule with its document.
func (e *Engine) Schedule(ctx context.Context, name string) (store.Schedule, *definition.Definition, error) {
	if fault.BadText(name, 100) != "" {
		return store.Schedule{}, nil, fmt.Errorf("schedule %.100q: %w", name, store.ErrNotFound)
	}
	k, err := e.opts.Store.Schedule(ctx, name)
	if err != nil {
		return k, nil, err
	}
	d, err := e.schedule(ctx, name, k.Version)
	return k, d, err
}

// scheduleKey is the concurrency key that the executions of a schedule share; "" for none.
func scheduleKey(d *definition.Definition) string {
	if d.Schedule.Overlap.Keyed() {
		return schedulePrefix + d.Name
	}
	return ""
}

// keepSchedules caches the documents of schedules that a committed transaction has read.
func (e *Engine) keepSchedules(t *transaction) {
	if read := txn.MadePart[readSchedules](t); read != nil {
		for key, d := range *read {
			e.schedules.keep(key, d)
		}
	}
}
