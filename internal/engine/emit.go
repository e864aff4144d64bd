package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	signalLimit  = 1 << 20 // bytes of its data
	subjectLimit = 512     // bytes of its subject
	headersLimit = 64      // headers that it keeps
	headerLimit  = 4096    // bytes of one header
	sourceLimit  = 200     // bytes of the name of the source
	emptyData    = "{}"    // the data of a signal without data
)

// Emission is a request to store a signal.
type Emission struct {
	Trigger string          // "alert.fired"
	Data    json.RawMessage // nil is {}
	// Key makes a repeated emission harmless: the same content under the same trigger and key returns the first signal, other content
	// ErrIdempotencyMismatch. That holds even if the emission would be refused by now.
	Key     string
	Subject string
	Source  string // "": flow.SourceAPI
	// Headers are those of the HTTP request. They are not part of the content.
	Headers map[string]string
	// Body is the hash of the signed part of a request whose id is not signed. The same body under another id within Replay is kept, marked as
	// replayed, and starts no rule. Zero: there is none.
	Body   [32]byte
	Replay time.Duration
	// Most is how many bytes Data may have; 0: 1 MiB.
	Most int
	// Cause is the execution that has caused it, and Rules are the rules that have led to it.
	Cause flow.ID
	Rules []string
}

// Emitted is the verdict on one emission.
type Emitted struct {
	Signal   flow.ID // with ErrIdempotencyMismatch, the signal with this key
	Existing bool    // an earlier emission with the same trigger and key made it
	Replayed bool    // the same content came before under another id
	// Enforcements are the results of the rules, by name of the rules. A signal that came before has none. A signal with more enforcements
	// than fit into one transaction has none yet: it is kept as new, and its rules are evaluated in parts.
	Enforcements []flow.Enforcement
	Err          error // *Invalid, ErrIdempotencyMismatch, or why it could not be committed
}

// Emit accepts signals; each has its own verdict, and an accepted one is durable when Emit returns. The error is for the whole call: then
// it is not known what was accepted.
func (e *Engine) Emit(ctx context.Context, all []Emission) ([]Emitted, error) {
	ops := make([]*emitOp, len(all))
	e.prepareSignals(ctx, all, ops)
	accepted := make([]op, 0, len(all))
	for _, o := range ops {
		if o.verdict.Err == nil {
			accepted = append(accepted, o)
		}
	}
	if len(accepted) > 0 {
		g := newGroup(len(accepted))
		for _, o := range accepted {
			o.(*emitOp).group = g
		}
		if err := e.enqueue(accepted...); err != nil {
			return nil, err
		}
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]Emitted, len(ops))
	for i, o := range ops {
		out[i] = o.verdict
	}
	return out, nil
}

// preparedFrom is how many signals are worth a goroutine: preparing one takes from 10 µs to milliseconds, depending on its rules.
const preparedFrom = 16

// prepareSignals makes the requests for signals, on several processors if there are many: signals do not depend on each other.
func (e *Engine) prepareSignals(ctx context.Context, all []Emission, ops []*emitOp) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), (len(all)+preparedFrom-1)/preparedFrom) {
		wg.Go(func() {
			for {
				to := int(next.Add(preparedFrom))
				if to-preparedFrom >= len(all) {
					return
				}
				for i := to - preparedFrom; i < min(to, len(all)); i++ {
					ops[i] = &emitOp{counters: &e.counters}
					ops[i].verdict.Err = e.prepareSafely(ctx, &all[i], ops[i])
				}
			}
		})
	}
	wg.Wait()
}

// prepareSafely turns a panic into the verdict on its signal: in a separate goroutine a panic would end the process.
func (e *Engine) prepareSafely(ctx context.Context, m *Emission, o *emitOp) (err error) {
	defer fault.Recovered(&err)
	return e.prepareSignal(ctx, m, o)
}

// prepareSignal fills o with the signal of an emission and its planned enforcements, or returns everything that is wrong with it.
func (e *Engine) prepareSignal(ctx context.Context, m *Emission, o *emitOp) error {
	problems := m.check()
	set, err := e.rulesInForce(ctx)
	if err != nil {
		return err
	}
	o.signal = flow.Signal{ID: e.opts.NewID(), Trigger: m.Trigger, Key: m.Key, Subject: m.Subject, Source: cmp.Or(m.Source, flow.SourceAPI), State: flow.SignalMatched,
		Data: m.Data, Body: m.Body, SignalDetail: flow.SignalDetail{Headers: m.Headers, Cause: m.Cause, Rules: m.Rules, Generation: set.Generation}}
	if o.replay = m.Replay; len(o.signal.Data) == 0 {
		o.signal.Data = json.RawMessage(emptyData)
	}
	o.signal.Hash = m.hash(o.signal.Data)
	if len(problems) == 0 {
		problems = applyTrigger(set.Triggers[m.Trigger], &o.signal)
	}
	if len(problems) > 0 {
		o.refused = &fault.Invalid{Problems: problems}
		if m.Key == "" || fault.BadText(m.Key, fault.KeyLimit) != "" || flow.BadTrigger(m.Trigger) != "" {
			return o.refused
		}
		return nil
	}
	made, err := e.match(ctx, set, &o.signal, ruleChoice{})
	if o.planned = made.all; made.more {
		for _, x := range made.all {
			if x.start != nil {
				e.rules.breakers.release(x.verdict.Rule)
			}
		}
		o.planned, o.signal.State = nil, flow.SignalNew
	}
	return err
}

// applyTrigger checks a signal against the document of its trigger, if it has one, and sets the document's defaults of
// the data, the key and the subject.
func applyTrigger(t *definition.Trigger, s *flow.Signal) (f fault.List) {
	if t == nil {
		return nil
	}
	data, err := t.ValidateData(s.Data)
	var wrong definition.Problems
	switch {
	case errors.As(err, &wrong):
		for _, p := range wrong {
			f.Add(p.Path, "", p.Message, cmp.Or(p.Fix, "send what the trigger's `data` asks for"))
		}
	case err != nil:
		f.Add("data", "", err.Error(), "")
	}
	if len(f) > 0 {
		return f
	}
	s.Data = data
	vars, err := definition.SignalVars(s)
	if err != nil {
		f.Add("data", "", err.Error(), "")
		return f
	}
	for _, part := range []struct {
		path string
		from *definition.Template
		to   *string
		most int
	}{{"key", t.Key, &s.Key, fault.KeyLimit}, {"subject", t.Subject, &s.Subject, subjectLimit}} {
		if *part.to != "" || part.from == nil {
			continue
		}
		text, err := part.from.Text(vars)
		if err != nil {
			f.Add(part.path, "", err.Error(), "send what the trigger makes it of, or give it with the signal")
			continue
		}
		f.Text(part.path, text, part.most)
		*part.to = text
	}
	return f
}

// hash distinguishes emissions with the same trigger and key. Equal data have the same hash in any notation.
func (m *Emission) hash(data json.RawMessage) [32]byte {
	canonical, err := jsonvalue.Canonical(nil, data)
	if err != nil {
		canonical = data
	}
	h := sha256.New()
	h.Write(strconv.AppendQuote(nil, m.Subject))
	h.Write(canonical)
	return [32]byte(h.Sum(nil))
}

// check returns what is wrong with an emission by itself.
func (m *Emission) check() []problem.Problem {
	var f fault.List
	switch say := flow.BadTrigger(m.Trigger); {
	case m.Trigger == "":
		f.Add("trigger", "", "is missing", "name what has happened, as in alert.fired")
	case say != "":
		f.Add("trigger", fault.Short(m.Trigger), say, flow.TriggerForm)
	case flow.OwnTrigger(m.Trigger):
		f.Add("trigger", m.Trigger, "is one that Pawl emits itself", "choose a name that does not begin with execution., schedule., inquiry. or rule.")
	}
	f.Text("key", m.Key, fault.KeyLimit)
	f.Text("subject", m.Subject, subjectLimit)
	f.Text("source", m.Source, sourceLimit)
	if bad := fault.BadJSON(m.Data, cmp.Or(m.Most, signalLimit)); bad != "" {
		f.Add("data", fmt.Sprintf("%.60q", m.Data), bad, "give a JSON value")
	}
	if len(m.Headers) > headersLimit {
		f.Add("headers", strconv.Itoa(len(m.Headers)), fmt.Sprintf("are more than the %d allowed", headersLimit), "leave some out")
		return f
	}
	for name, value := range m.Headers {
		f.Text(fmt.Sprintf("headers.%.100s", name), name, headerLimit)
		f.Text(fmt.Sprintf("headers.%.100s", name), value, headerLimit)
	}
	return f
}

// emitOp is the request for one signal. Its verdict is read when its group is done.
type emitOp struct {
	signal   flow.Signal
	replay   time.Duration // how long its body is remembered
	refused  error         // why there is no signal: the answer can only be an earlier signal under the key
	verdict  Emitted
	group    *group
	counters *counters

	planned []*plannedEnforcement // what the rules make of it
}

func (o *emitOp) want(t *transaction) {
	if o.signal.Key != "" {
		signals := txn.Part[keptSignals](t)
		signals.wantedKeys = append(signals.wantedKeys, store.SignalKey{Trigger: o.signal.Trigger, Key: o.signal.Key})
	}
	if o.replay > 0 && o.signal.Body != ([32]byte{}) {
		signals := txn.Part[keptSignals](t)
		signals.wantedBodies = append(signals.wantedBodies, o.signal.Body)
	}
	for _, x := range o.planned {
		x.want(t)
	}
}

// SignalDiffers is the ErrIdempotencyMismatch of an emission: an earlier signal with its trigger and key has other content.
type SignalDiffers struct {
	Trigger, Key string
	Signal       flow.ID // the one that stands
}

func (d *SignalDiffers) Error() string {
	return fmt.Sprintf("the key %q of trigger %s is that of %s, which has other content", d.Key, d.Trigger, d.Signal.Text(flow.SignalPrefix))
}

func (d *SignalDiffers) Unwrap() error { return ErrIdempotencyMismatch }

func (o *emitOp) decide(ctx context.Context, t *transaction) error {
	signals := txn.Part[keptSignals](t)
	if known, ok := signals.keys[store.SignalKey{Trigger: o.signal.Trigger, Key: o.signal.Key}]; ok {
		o.verdict = Emitted{Signal: known.ID, Existing: true}
		if known.Hash != o.signal.Hash {
			o.verdict = Emitted{Signal: known.ID, Err: &SignalDiffers{Trigger: o.signal.Trigger, Key: o.signal.Key, Signal: known.ID}}
		}
		return nil
	}
	if o.refused != nil {
		o.verdict = Emitted{Err: o.refused}
		return nil
	}
	s := o.signal
	last, came := signals.bodies[s.Body]
	s.Replayed = came && o.replay > 0 && t.now.Sub(last) < o.replay
	if err := t.keepSignal(ctx, &s); err != nil {
		return err
	}
	o.verdict = Emitted{Signal: s.ID, Replayed: s.Replayed}
	signals.unasked = signals.unasked || s.State == flow.SignalNew
	if s.Replayed {
		return nil
	}
	for _, x := range o.planned {
		e, err := t.enforce(ctx, &s, x)
		if err != nil {
			return err
		}
		o.verdict.Enforcements = append(o.verdict.Enforcements, e)
	}
	return nil
}

func (o *emitOp) locks() (keys []string) {
	for _, x := range o.planned {
		keys = append(keys, x.locks()...)
	}
	return keys
}

func (o *emitOp) size() int {
	n := len(o.signal.Data)
	for _, x := range o.planned {
		n += x.size()
	}
	return n
}

func (o *emitOp) class() class { return classCall }

func (o *emitOp) executions() []flow.ID { return nil }

func (o *emitOp) done(err error) {
	if err != nil {
		o.verdict = Emitted{Err: err}
	}
	if o.verdict.Err == nil && !o.verdict.Existing {
		o.counters.enforced(o.verdict.Enforcements)
	}
	o.group.done()
}

// keptSignals are the signals that a transaction looks up and keeps.
type keptSignals struct {
	wantedKeys   []store.SignalKey
	wantedBodies [][32]byte
	keys         map[store.SignalKey]store.KnownSignal
	bodies       map[[32]byte]time.Time // when each came last
	sources      []string               // of the kept signals
	unasked      bool                   // there are new signals whose rules are still to be evaluated
}

// loadSignals looks up earlier signals with the keys or bodies of the emissions.
func (t *transaction) loadSignals(ctx context.Context) (err error) {
	signals := txn.MadePart[keptSignals](t)
	if signals == nil {
		return nil
	}
	if len(signals.wantedKeys) > 0 {
		if signals.keys, err = t.tx.Signalled(ctx, signals.wantedKeys); err != nil {
			return fmt.Errorf("load keys of signals: %w", err)
		}
	}
	if len(signals.wantedBodies) > 0 {
		if signals.bodies, err = t.tx.SignalledBodies(ctx, signals.wantedBodies); err != nil {
			return fmt.Errorf("load bodies of signals: %w", err)
		}
	}
	return nil
}

// keepSignal numbers a signal and adds it to the rows of the transaction. Every signal goes through here.
func (t *transaction) keepSignal(ctx context.Context, s *flow.Signal) (err error) {
	if s.Number, err = t.tx.Tickets(ctx, 1); err != nil {
		return fmt.Errorf("number signal %s: %w", s.ID.Text(flow.SignalPrefix), err)
	}
	s.At = t.now
	signals := txn.Part[keptSignals](t)
	if s.Key != "" {
		if signals.keys == nil {
			signals.keys = map[store.SignalKey]store.KnownSignal{}
		}
		signals.keys[store.SignalKey{Trigger: s.Trigger, Key: s.Key}] = store.KnownSignal{ID: s.ID, Hash: s.Hash}
	}
	if s.Body != ([32]byte{}) {
		if signals.bodies == nil {
			signals.bodies = map[[32]byte]time.Time{}
		}
		signals.bodies[s.Body] = s.At
	}
	rows := t.changes.add()
	rows.Signals.New = append(rows.Signals.New, *s)
	t.e.waits.Kept(t, s)
	signals.sources = append(signals.sources, s.Source)
	t.effects.addFailpoint(failpoint.SignalKept)
	return nil
}

// tellEmitted counts the signals of a committed transaction, and wakes the waits for them.
func (e *Engine) tellEmitted(t *transaction) {
	signals := txn.MadePart[keptSignals](t)
	if signals == nil {
		return
	}
	for _, source := range signals.sources {
		e.counters.emitted(source)
	}
	if len(signals.sources) > 0 {
		e.watch.wakeAll()
	}
	if signals.unasked {
		e.rules.wakeMatching()
	}
}

// EmitTo emits a signal about an execution that has not ended: the waits of its tasks that name no subject take such
// signals. The errors are those of Emit, store.ErrNotFound and flow.ErrFinished.
func (e *Engine) EmitTo(ctx context.Context, id flow.ID, m Emission) (Emitted, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return Emitted{}, err
	}
	if x.Stage.Terminal() {
		return Emitted{}, errFinished(x)
	}
	m.Subject = id.String()
	out, err := e.Emit(ctx, []Emission{m})
	if err != nil {
		return Emitted{}, err
	}
	return out[0], out[0].Err
}
