package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// Submission is a request for one execution. Zero fields mean the action's settings, then Pawl's defaults.
type Submission struct {
	Action string          // a registered name, "name@version", "name@alias", or a built-in kind for ad-hoc work
	Input  json.RawMessage // for a built-in kind: its handler's payload

	Queue        string
	Priority     *int
	Labels       map[string]string
	WorkerLabels map[string]string `json:",omitempty"` // labels that its worker must have; absent from the hash when empty
	flow.Settings
	Retry     *flow.Retry
	Key       string
	KeyLimit  int
	Fair      flow.Fair
	WhenFull  flow.WhenFull
	Rate      *flow.Rate `json:",omitempty"` // nil: the action's own; absent from the hash then
	NotBefore time.Time
	Cache     *Cache        `json:",omitempty"` // the cache for its outcome; absent from the hash when nil
	NoCache   bool          `json:",omitempty"` // none of its tasks uses a kept outcome; absent from the hash when false
	StartIn   time.Duration `json:",omitempty"` // NotBefore, counted from its acceptance; absent from the hash when 0

	// IdempotencyKey makes a repeated submission harmless: the same submission returns the same execution, another one ErrIdempotencyMismatch.
	// That holds even if the submission would be refused by now.
	IdempotencyKey string
	Traceparent    string
	Rules          []string `json:"-"` // they have led to it
	// Refused is why the caller does not accept the submission. It is the verdict, unless the same submission was accepted
	// before under its idempotency key.
	Refused error `json:"-"`

	work *definition.Work // counts the work of making its request; nil: it is not counted
}

// Cache allows an execution to use the kept outcome of another one with the same work, and to keep its own.
type Cache struct {
	TTL time.Duration // the greatest age of the outcome
	Key *string       // replaces the input; nil: the input counts
}

// Submitted is the verdict on one submission.
type Submitted struct {
	Execution flow.ID
	Existing  bool  // an earlier submission with the same idempotency key made it
	Err       error // *Invalid, ErrIdempotencyMismatch, or the error of the commit
}

// Submit accepts executions; each has its own verdict, and an accepted one is durable when Submit returns. The error is for the whole call:
// then it is not known what was accepted.
func (e *Engine) Submit(ctx context.Context, subs []Submission) ([]Submitted, error) {
	ops := make([]submitOp, len(subs))
	prepared := make([]*submitOp, 0, len(subs))
	for i := range subs {
		o := &ops[i]
		o.hash = subs[i].hash()
		if err := e.prepare(ctx, &subs[i], o); err != nil {
			o.verdict.Err = err
			continue
		}
		prepared = append(prepared, o)
	}
	if err := e.submit(ctx, prepared...); err != nil {
		return nil, err
	}
	out := make([]Submitted, len(ops))
	for i := range ops {
		out[i] = ops[i].verdict
	}
	return out, nil
}

// CheckSubmission returns the request that a submission would make now, or an Invalid with everything that is wrong
// with it. It changes nothing, and guarantees nothing: the definition may change before the submission.
func (e *Engine) CheckSubmission(ctx context.Context, s Submission) (flow.Request, error) {
	var r flow.Request
	err := e.checkedRequest(ctx, &s, e.opts.NewID(), &r)
	return r, err
}

// submit waits until every request has its verdict.
func (e *Engine) submit(ctx context.Context, ops ...*submitOp) error {
	if len(ops) == 0 {
		return nil
	}
	g := newGroup(len(ops))
	all := make([]op, len(ops))
	for i, o := range ops {
		o.group, all[i] = g, o
	}
	if err := e.enqueue(all...); err != nil {
		return err
	}
	return g.wait(ctx)
}

// submitOp is the request for one execution. Its verdict is read when its group is done.
type submitOp struct {
	id        flow.ID
	request   flow.Request
	refused   error // why there is no request: the answer can only be an earlier execution under the key
	key       string
	hash      [32]byte
	verdict   Submitted
	group     *group
	submitted *atomic.Int64 // counts submitted executions
	sums      []blob.Sum    // of its uploads
	startIn   time.Duration // NotBefore, from the transaction's time; 0: NotBefore of the request
	reuses    []store.Reuse // of a rerun
	cached    bool          // it ends with a kept outcome, if there is one
}

func (o *submitOp) want(t *transaction) {
	if o.key != "" {
		t.wants.idempotency = append(t.wants.idempotency, o.key)
	}
	t.wants.expectPauses = t.wants.expectPauses || o.request.Kind.ByEngine()
	t.wants.keys = append(t.wants.keys, o.locks()...)
	t.wants.uploads = append(t.wants.uploads, o.sums...)
	if o.cached {
		kept := txn.Part[keptOutcomes](t)
		kept.wanted = append(kept.wanted, o.request.Cache.Hash)
	}
}

func (o *submitOp) locks() []string { return locksOf(&o.request) }

func locksOf(r *flow.Request) (keys []string) {
	if r.Key != "" {
		keys = append(keys, r.Key)
	}
	if r.Rate.Key != "" {
		keys = append(keys, meterLock(r))
	}
	return keys
}

func (o *submitOp) decide(ctx context.Context, t *transaction) error {
	if existing, ok := t.loaded.idempotency[o.key]; ok && o.key != "" {
		o.verdict = Submitted{Execution: existing.Execution, Existing: true}
		if existing.Hash != o.hash {
			o.verdict = Submitted{Err: mismatch(existing)}
		}
		return nil
	}
	if err := o.refusal(t); err != nil {
		o.verdict = Submitted{Err: err}
		return nil
	}
	if o.key != "" {
		t.loaded.idempotency[o.key] = store.IdempotencyKey{Key: o.key, Execution: o.id, Hash: o.hash}
	}
	o.verdict = Submitted{Execution: o.id}
	r := o.request
	r.CreatedAt = t.now
	if o.startIn > 0 {
		r.NotBefore = t.now.Add(o.startIn)
	}
	kept, cached := t.cachedOutcome(o)
	if cached {
		r.ReusedOf = kept.Origin
	}
	d := flow.Submit(o.id, r)
	t.add(d)
	t.referenceUploads(o.id, o.sums)
	t.changes.workflows.Reuses = append(t.changes.workflows.Reuses, o.reuses...)
	if cached {
		if err := d.Reuse(kept.Output, t.now); err != nil {
			return err
		}
		t.Changed(d)
	} else if err := t.admit(ctx, []*flow.Draft{d}); err != nil {
		return err
	}
	if o.key != "" {
		// After admit, which may write the decisions so far: the row of a key refers to the execution's row, which is written only after admit
		// has recorded it as changed.
		t.changes.idempotency = append(t.changes.idempotency, t.loaded.idempotency[o.key])
	}
	return nil
}

// refusal is why the transaction does not accept the execution; nil: it does.
func (o *submitOp) refusal(t *transaction) error {
	if o.refused != nil || len(o.sums) == 0 {
		return o.refused
	}
	return uploads.Missing(&o.request, t.loaded.uploads)
}

// labelWeight is how many times as long a byte of a label takes to write as one of an input: labels are rows with an index. 64 executions
// with 64 labels of 512 bytes each, 2 MB, took 350 ms on 2 busy processors.
const labelWeight = 4

func (o *submitOp) size() int {
	n := o.request.PayloadSize()
	n += reuseWeight * len(o.reuses)
	for name, value := range o.request.Labels {
		n += labelWeight * (len(name) + len(value))
	}
	return n
}

func (o *submitOp) class() class { return classCall }

func (o *submitOp) executions() []flow.ID { return []flow.ID{o.id} }

func (o *submitOp) done(err error) {
	if err != nil {
		o.verdict = Submitted{Err: err}
	}
	if o.verdict.Err == nil && !o.verdict.Existing {
		o.submitted.Add(1)
	}
	o.group.done()
}

// prepare fills o with the request of a submission, or returns everything that is wrong with it.
func (e *Engine) prepare(ctx context.Context, s *Submission, o *submitOp) error {
	id := e.opts.NewID()
	r := &o.request
	err := e.request(ctx, s, id, r)
	if err != nil {
		if !s.mayBeKnown(err) {
			return err
		}
		*r = flow.Request{} // a refused request locks nothing
	}
	o.id, o.key, o.refused, o.submitted = id, s.IdempotencyKey, err, &e.counters.submitted
	o.sums, o.startIn, o.cached = uploads.SumsIn(r.Input, r.With), s.StartIn, r.Cache != nil && !s.NoCache
	return nil
}

// request is checkedRequest for a submission with an id, and stores the request's routing key.
func (e *Engine) request(ctx context.Context, s *Submission, id flow.ID, r *flow.Request) error {
	if err := e.checkedRequest(ctx, s, id, r); err != nil {
		return err
	}
	return e.commitRoutingKey(ctx, r.Queue)
}

// checkedRequest makes the request of a submission, under its routing key, or returns everything that is wrong with it. It stores nothing:
// the store may not have the routing key yet. It fills r, which has 576 bytes, instead of returning it: each function on the way would copy
// it.
func (e *Engine) checkedRequest(ctx context.Context, s *Submission, id flow.ID, r *flow.Request) error {
	if s.Refused != nil {
		return s.Refused
	}
	if problems := s.check(); len(problems) > 0 {
		return &fault.Invalid{Problems: problems}
	}
	if err := e.resolve(ctx, s, id, r); err != nil {
		return err
	}
	if r.Kind.ByEngine() && len(s.WorkerLabels) > 0 {
		return fault.New(selectorField, flow.LabelText(s.WorkerLabels), fmt.Sprintf("no worker runs a %s", r.Kind), "leave it out; a workflow's tasks and actions each ask for the labels that they need")
	}
	s.override(r)
	if s.Retry != nil {
		var f requests.Faults
		if f.RetryCodes(s.Retry.On, r.Kind); len(f.List) > 0 {
			return &fault.Invalid{Problems: f.List}
		}
	}
	if err := e.checkQueue(ctx, r); err != nil {
		return err
	}
	if err := e.assign(r); err != nil {
		return err
	}
	if s.Cache != nil {
		if r.Kind.NotCacheable() {
			return fault.New("cache", "", fmt.Sprintf("what a %s ends with is not kept: it is about this moment", r.Kind), "leave it out")
		}
		r.Cache = s.Cache.of(r)
	}
	return e.uploads.Check(ctx, r)
}

func (e *Engine) checkQueue(ctx context.Context, r *flow.Request) error {
	queue, _ := flow.SplitRoutingKey(r.Queue)
	known, err := e.catalog.KnowsQueue(ctx, queue)
	if err != nil {
		return err
	}
	if !known {
		return fault.New("queue", queue, catalog.UnknownQueue(queue), catalog.QueueFix(queue))
	}
	return nil
}

// resolve makes the request for a submission from the action's definition. If an alias has several versions, the same idempotency key gets
// the same one; without a key the id of the execution chooses.
func (e *Engine) resolve(ctx context.Context, s *Submission, id flow.ID, r *flow.Request) error {
	if kind := flow.Kind(s.Action); kind.AdHoc() {
		*r = requests.BuiltIn(kind, s.Input)
		return e.checkPayload(ctx, kind, s.Input, "input")
	}
	name, wanted, alias, err := definition.SplitAction(s.Action)
	if err != nil {
		return fault.New("action", s.Action, err.Error(), "")
	}
	if alias != "" {
		name = s.Action
	}
	def, version, err := e.catalog.GetFor(ctx, name, wanted, cmp.Or(s.IdempotencyKey, id.String()))
	if errors.Is(err, store.ErrNotFound) {
		fix, err := e.catalog.NameFix(ctx, name, wanted)
		if err != nil {
			return err
		}
		return fault.New("action", s.Action, fmt.Sprintf("there is no action or workflow %.100q", s.Action), fix)
	}
	if err != nil {
		return fmt.Errorf("look up action %q: %w", s.Action, err)
	}
	if err := e.catalog.RefuseRetired(ctx, def.Name); err != nil {
		return err
	}
	if *r, err = requests.For(def, version, s.Input, s.Labels, nil, cmp.Or(s.work, definition.WorkWithin(definition.SharedWork))); err != nil {
		return inputProblems(err)
	}
	r.Alias = alias
	return e.checkPayload(ctx, r.Kind, r.Payload(), "with")
}

// checkPayload returns what is wrong with the payload of a built-in kind; field is its field in the request.
func (e *Engine) checkPayload(ctx context.Context, kind flow.Kind, payload json.RawMessage, field string) (err error) {
	if check := e.engineKind(kind).Check; check != nil {
		err = check(ctx, payload, field)
	}
	if err != nil || e.opts.Validate == nil || !kind.AdHoc() {
		return err
	}
	if err = e.opts.Validate(kind, payload); err == nil {
		return nil
	}
	var list problem.List
	if !errors.As(err, &list) {
		return fault.New(field, "", err.Error(), "")
	}
	v := &fault.Invalid{}
	for _, p := range list {
		p.Path = strings.TrimSuffix(field+"."+p.Path, ".")
		v.Problems = append(v.Problems, p)
	}
	return v
}

func inputProblems(err error) error {
	var ps definition.Problems
	if !errors.As(err, &ps) {
		return fault.New("input", "", err.Error(), "")
	}
	v := &fault.Invalid{}
	for _, p := range ps {
		v.Problems = append(v.Problems, problem.Problem{Path: p.Path, Message: p.Message, Fix: p.Fix})
	}
	return v
}

// override applies the submitter's settings over the action's.
func (s *Submission) override(r *flow.Request) {
	requests.Apply(r, &definition.Settings{
		Queue: s.Queue, Priority: s.Priority, Settings: s.Settings, Retry: s.Retry, Labels: s.Labels, WorkerLabels: s.WorkerLabels,
	})
	if s.Key != "" {
		r.Key, r.KeyLimit, r.WhenFull, r.Fair = s.Key, s.KeyLimit, s.WhenFull, s.Fair
	}
	if s.Rate != nil {
		r.Rate = *s.Rate
	}
	r.NotBefore, r.NoCache, r.IdempotencyKey, r.Traceparent, r.Rules = s.NotBefore, s.NoCache, s.IdempotencyKey, s.Traceparent, s.Rules
}
