package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Submission asks for one execution. Zero fields mean the action's own settings, then Pawl's.
type Submission struct {
	Action string          // a registered name, "name@version", or a built-in kind for ad-hoc work
	Input  json.RawMessage // for a built-in kind: what its handler gets

	Queue        string
	Priority     *int
	Labels       map[string]string
	WorkerLabels map[string]string `json:",omitempty"` // those that a worker must have to get it; absent from the hash when empty
	Timeout      time.Duration
	QueueTimeout time.Duration
	TotalTimeout time.Duration
	Retry        *flow.Retry
	Key          string
	KeyLimit     int
	WhenFull     flow.WhenFull
	NotBefore    time.Time

	// IdempotencyKey makes submitting again harmless: the same submission gives the same execution, another one
	// ErrIdempotencyMismatch.
	IdempotencyKey string
	Traceparent    string
}

// Submitted is the verdict on one submission.
type Submitted struct {
	Execution flow.ID
	Existing  bool  // an earlier submission with the same idempotency key made it
	Err       error // *Invalid, ErrIdempotencyMismatch, or why it could not be committed
}

// ErrIdempotencyMismatch means that the idempotency key came before with another submission.
var ErrIdempotencyMismatch = errors.New("the idempotency key was used before with a different submission")

// Problem is one thing that is wrong with a submission.
type Problem struct {
	Path    string `json:"path"` // "input.items[2]", "queue"
	Value   string `json:"value,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Invalid lists everything that is wrong with a submission. Nothing of it has been stored.
type Invalid struct{ Problems []Problem }

func (v *Invalid) Error() string {
	var b strings.Builder
	for i, p := range v.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		if p.Path != "" {
			fmt.Fprintf(&b, "%s: ", p.Path)
		}
		b.WriteString(p.Message)
		if p.Fix != "" {
			fmt.Fprintf(&b, " (%s)", p.Fix)
		}
	}
	return b.String()
}

func invalid(path, value, message, fix string) *Invalid {
	return &Invalid{[]Problem{{Path: path, Value: value, Message: message, Fix: fix}}}
}

// Submit accepts executions; each has its own verdict, and an accepted one is durable when Submit returns. The error is
// for the whole call: nothing is known then about what was accepted.
func (e *Engine) Submit(ctx context.Context, subs []Submission) ([]Submitted, error) {
	out := make([]Submitted, len(subs))
	g := newGroup(len(subs) + 1)
	ops := make([]op, 0, len(subs))
	for i := range subs {
		o := &submitOp{out: &out[i], group: g, key: subs[i].IdempotencyKey}
		if err := e.prepare(ctx, &subs[i], o); err != nil {
			out[i].Err = err
			g.done()
			continue
		}
		ops = append(ops, o)
	}
	g.done()
	if err := e.submit(ctx, g, ops...); err != nil {
		return nil, err
	}
	return out, nil
}

// submit waits until all requests of a group have their verdicts.
func (e *Engine) submit(ctx context.Context, g *group, ops ...op) error {
	if len(ops) > 0 {
		if err := e.enqueue(ops...); err != nil {
			return err
		}
	}
	if err := g.wait(ctx); err != nil {
		return err
	}
	e.counters.submitted.Add(int64(len(ops)))
	return nil
}

type submitOp struct {
	id      flow.ID
	request flow.Request
	key     string
	hash    [32]byte
	out     *Submitted
	group   *group
}

func (o *submitOp) want(t *turn) {
	if o.key != "" {
		t.wantIdem = append(t.wantIdem, o.key)
	}
	if o.request.Key != "" {
		t.wantKeys = append(t.wantKeys, o.request.Key)
	}
}

func (o *submitOp) decide(ctx context.Context, t *turn) error {
	if o.key != "" {
		if known, ok := t.idem[o.key]; ok {
			*o.out = Submitted{Execution: known.Execution, Existing: true}
			if known.Hash != o.hash {
				*o.out = Submitted{Err: fmt.Errorf("%w (key %q, execution %s)", ErrIdempotencyMismatch, o.key, known.Execution)}
			}
			return nil
		}
		t.idem[o.key] = store.IdempotencyKey{Key: o.key, Execution: o.id, Hash: o.hash}
	}
	*o.out = Submitted{Execution: o.id}
	r := o.request
	r.CreatedAt = t.now
	d := flow.Submit(o.id, r)
	t.add(d)
	if err := t.admit(ctx, []*flow.Draft{d}); err != nil {
		return err
	}
	if o.key != "" {
		// Not before: to admit may write what the turn has so far, and a key names an execution that is there.
		t.newIdem = append(t.newIdem, t.idem[o.key])
	}
	return nil
}

func (o *submitOp) done(err error) {
	if err != nil {
		*o.out = Submitted{Err: err}
	}
	o.group.done()
}

// Bounds of a submission.
const (
	inputLimit    = 16 << 20 // bytes; larger input belongs into a blob
	labelsLimit   = 64
	labelLimit    = 256 // bytes of a label's name and of its value
	keyLimit      = 512 // bytes of a concurrency or idempotency key
	timeoutLimit  = 366 * 24 * time.Hour
	priorityLimit = 1000
	holdersLimit  = 100_000
	attemptsLimit = 100
	depthLimit    = 20 // workflows in workflows
)

// prepare turns a submission into a request, or says everything that is wrong with it.
func (e *Engine) prepare(ctx context.Context, s *Submission, o *submitOp) error {
	if problems := s.check(); len(problems) > 0 {
		return &Invalid{problems}
	}
	r, err := e.resolve(ctx, s)
	if err != nil {
		return err
	}
	if r.Kind.ByEngine() && len(s.WorkerLabels) > 0 {
		return invalid(selectorField, flow.LabelText(s.WorkerLabels), fmt.Sprintf("no worker runs a %s", r.Kind), "leave it out; a workflow's tasks and actions each ask for the labels that they need")
	}
	s.override(&r)
	if err := e.checkQueue(ctx, &r); err != nil {
		return err
	}
	if err := e.place(ctx, &r); err != nil {
		return err
	}
	o.id, o.request = e.opts.NewID(), r
	if s.IdempotencyKey != "" {
		o.hash = s.hash()
	}
	return nil
}

func (e *Engine) checkQueue(ctx context.Context, r *flow.Request) error {
	queue, _ := flow.SplitLane(r.Queue)
	known, err := e.catalog.knowsQueue(ctx, queue)
	if err != nil {
		return err
	}
	if !known {
		return invalid("queue", queue, unknownQueue(queue), queueFix)
	}
	return nil
}

// resolve makes the request for a submission from the action's definition.
func (e *Engine) resolve(ctx context.Context, s *Submission) (flow.Request, error) {
	if kind := flow.Kind(s.Action); adHoc(kind) {
		if kind == flow.KindSleep {
			if _, err := sleepOf(s.Input); err != nil {
				return flow.Request{}, invalid("input", "", err.Error(), "")
			}
		}
		if e.opts.Validate != nil {
			if err := e.opts.Validate(kind, s.Input); err != nil {
				return flow.Request{}, invalid("input", "", err.Error(), "")
			}
		}
		return builtIn(kind, s.Input), nil
	}
	name, version, err := splitAction(s.Action)
	if err != nil {
		return flow.Request{}, invalid("action", s.Action, err.Error(), "")
	}
	def, version, err := e.catalog.get(ctx, name, version)
	if errors.Is(err, store.ErrNotFound) {
		return flow.Request{}, invalid("action", s.Action, fmt.Sprintf("there is no action or workflow %.100q", s.Action),
			"apply its definition first (pawl apply FILE), or use a built-in: code, container, http, llm, input, output, sleep")
	}
	if err != nil {
		return flow.Request{}, fmt.Errorf("look up action %q: %w", s.Action, err)
	}
	r, err := requestFor(def, version, s.Input, s.Labels, nil)
	if err != nil {
		return r, inputProblems(err)
	}
	if e.opts.Validate != nil && adHoc(r.Kind) {
		if err := e.opts.Validate(r.Kind, r.Payload()); err != nil {
			return r, invalid("with", "", err.Error(), "")
		}
	}
	return r, nil
}

// adHoc reports whether a kind may be submitted without a definition.
func adHoc(k flow.Kind) bool {
	switch k {
	case flow.KindCode, flow.KindContainer, flow.KindHTTP, flow.KindLLM, flow.KindInput, flow.KindOutput, flow.KindSleep, flow.KindNoop:
		return true
	}
	return false
}

// builtIn is the request for a built-in kind without a definition.
func builtIn(k flow.Kind, input json.RawMessage) flow.Request {
	return flow.Request{Action: string(k), Kind: k, Queue: DefaultQueue, Input: input}
}

// requestFor makes the request for one version of a definition. An error is of the input, or of an expression on it.
func requestFor(def *definition.Definition, version int, input json.RawMessage, labels, env map[string]string) (flow.Request, error) {
	labels = merged(def.Settings.Labels, labels)
	run, err := def.Prepare(input, labels, env)
	if err != nil {
		return flow.Request{}, err
	}
	r := flow.Request{
		Action: def.Name, Version: version, Kind: run.Kind, Queue: DefaultQueue,
		Input: run.Input, With: run.With, Labels: labels,
		Key: run.Key, KeyLimit: run.KeyLimit, WhenFull: run.WhenFull,
	}
	if !adHoc(r.Kind) && !r.Kind.ByEngine() {
		r.Queue = string(r.Kind) // a custom handler's own queue: only programs that have it serve it
	}
	applySettings(&r, &def.Settings)
	return r, nil
}

// applySettings lays the settings of a definition or a task over a request.
func applySettings(r *flow.Request, s *definition.Settings) {
	if s.Queue != "" || len(s.WorkerLabels) > 0 {
		r.Queue = flow.Relane(r.Queue, s.Queue, s.WorkerLabels)
	}
	if s.Priority != nil {
		r.Priority = *s.Priority
	}
	if s.Timeout != 0 {
		r.Timeout = s.Timeout
	}
	if s.QueueTimeout != 0 {
		r.QueueTimeout = s.QueueTimeout
	}
	if s.TotalTimeout != 0 {
		r.TotalTimeout = s.TotalTimeout
	}
	if s.Retry != nil {
		r.Retry = *s.Retry
	}
	r.Labels = merged(r.Labels, s.Labels)
}

func merged(a, b map[string]string) map[string]string {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	m := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		m[k] = v
	}
	for k, v := range b {
		m[k] = v
	}
	return m
}

func inputProblems(err error) error {
	var ps definition.Problems
	if !errors.As(err, &ps) {
		return invalid("input", "", err.Error(), "")
	}
	v := &Invalid{}
	for _, p := range ps {
		v.Problems = append(v.Problems, Problem{Path: p.Path, Message: p.Message, Fix: p.Fix})
	}
	return v
}

// override lays what the submitter said over the action's settings.
func (s *Submission) override(r *flow.Request) {
	applySettings(r, &definition.Settings{
		Queue: s.Queue, Priority: s.Priority, Timeout: s.Timeout, QueueTimeout: s.QueueTimeout,
		TotalTimeout: s.TotalTimeout, Retry: s.Retry, Labels: s.Labels, WorkerLabels: s.WorkerLabels,
	})
	if s.Key != "" {
		r.Key, r.KeyLimit, r.WhenFull = s.Key, s.KeyLimit, s.WhenFull
	}
	r.NotBefore, r.IdempotencyKey, r.Traceparent = s.NotBefore, s.IdempotencyKey, s.Traceparent
}

// hash tells submissions with the same idempotency key apart.
func (s *Submission) hash() [32]byte {
	c := *s
	c.IdempotencyKey, c.Traceparent = "", ""
	if len(c.Input) > 0 {
		var flat bytes.Buffer
		if err := json.Compact(&flat, c.Input); err == nil {
			c.Input = flat.Bytes()
		}
	}
	b, err := json.Marshal(c)
	if err != nil {
		b = fmt.Appendf(nil, "%#v", c) // cannot happen to what passed check; still tells most apart
	}
	return sha256.Sum256(b)
}

// check says what is wrong with a submission in itself.
func (s *Submission) check() []Problem {
	var ps []Problem
	say := func(path, value, message, fix string) {
		ps = append(ps, Problem{Path: path, Value: value, Message: message, Fix: fix})
	}
	text := func(path, value string, limit int) {
		switch {
		case len(value) > limit:
			say(path, fmt.Sprintf("%.40q…", value), fmt.Sprintf("has %d bytes, more than the %d allowed", len(value), limit), "shorten it")
		case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			say(path, fmt.Sprintf("%.60q", value), "has a NUL byte or is not UTF-8", "remove the byte")
		}
	}
	if s.Action == "" {
		say("action", "", "is missing", "name a registered action or workflow, or a built-in kind")
	}
	text("action", s.Action, 200)
	text("queue", s.Queue, 100)
	if flow.Narrow(s.Queue) {
		say("queue", s.Queue, unknownQueue(s.Queue), queueFix)
	}
	if len(s.WorkerLabels) > flow.SelectorLimit {
		say(selectorField, fmt.Sprint(len(s.WorkerLabels)), fmt.Sprintf("are more than the %d allowed", flow.SelectorLimit), "leave some out")
	}
	for k, v := range s.WorkerLabels {
		if flow.BadLabelKey(k) {
			say(selectorField, k, fmt.Sprintf("%.80q is not the key of a worker's label", k), flow.LabelKeyForm)
		} else if flow.BadLabelValue(v) {
			say(selectorField+"."+k, v, fmt.Sprintf("%.80q is not the value of a worker's label", v), flow.LabelValueForm)
		}
	}
	text("concurrency.key", s.Key, keyLimit)
	text("idempotency_key", s.IdempotencyKey, keyLimit)
	if say2 := badJSON(s.Input, inputLimit); say2 != "" {
		say("input", fmt.Sprintf("%.60q", s.Input), say2, "give a JSON value")
	}
	if len(s.Labels) > labelsLimit {
		say("labels", fmt.Sprint(len(s.Labels)), fmt.Sprintf("are more than the %d allowed", labelsLimit), "leave some out")
	}
	for k, v := range s.Labels {
		text("labels."+k, k, labelLimit)
		text("labels."+k, v, labelLimit)
	}
	span := func(path string, d time.Duration) {
		if d < 0 || d > timeoutLimit {
			say(path, d.String(), "is out of range", "give a duration above 0 and up to 366 days")
		}
	}
	span("timeout", s.Timeout)
	span("queue_timeout", s.QueueTimeout)
	span("total_timeout", s.TotalTimeout)
	if p := s.Priority; p != nil && (*p < -priorityLimit || *p > priorityLimit) {
		say("priority", fmt.Sprint(*p), "is out of range", "give -1000 to 1000")
	}
	if s.Key != "" && (s.KeyLimit < 1 || s.KeyLimit > holdersLimit) {
		say("concurrency.limit", fmt.Sprint(s.KeyLimit), "is out of range", "give 1 to 100000")
	}
	switch s.WhenFull {
	case "", flow.WhenFullQueue, flow.WhenFullCancelNew, flow.WhenFullCancelOldest:
	default:
		say("concurrency.when_full", string(s.WhenFull), "is unknown", "one of queue, cancel_new, cancel_oldest")
	}
	if s.Retry != nil && (s.Retry.MaxAttempts < 0 || s.Retry.MaxAttempts > attemptsLimit) {
		say("retry.max_attempts", fmt.Sprint(s.Retry.MaxAttempts), "is out of range", "give 1 to 100")
	}
	return ps
}
