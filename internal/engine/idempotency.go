package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/store"
)

// ErrIdempotencyMismatch means that the idempotency key was used before with another submission.
var ErrIdempotencyMismatch = errors.New("the idempotency key was used before with a different submission")

func mismatch(existing store.IdempotencyKey) error {
	return fmt.Errorf("%w (key %q, execution %s)", ErrIdempotencyMismatch, existing.Key, existing.Execution)
}

// hash distinguishes submissions with the same idempotency key; without a key it is zero. The same input has the same hash in any notation:
// {"a":1} and {"a": 1.0}.
func (s *Submission) hash() (sum [32]byte) {
	if s.IdempotencyKey != "" {
		sum = s.sum()
	}
	return sum
}

func (s *Submission) sum() [32]byte {
	c := *s
	c.Input, c.IdempotencyKey, c.Traceparent = nil, "", ""
	settings, err := json.Marshal(c)
	if err != nil {
		settings = fmt.Appendf(nil, "%#v", c) // only settings that check refuses
	}
	input, err := jsonvalue.Canonical(nil, s.Input)
	if err != nil {
		input = s.Input // no JSON, or JSON that the engine does not read
	}
	h := sha256.New()
	h.Write(settings)
	h.Write(input)
	return [32]byte(h.Sum(nil))
}

// mayBeKnown reports whether a submission that is refused with err may have been accepted before.
func (s *Submission) mayBeKnown(err error) bool {
	var refused *fault.Invalid
	return s.IdempotencyKey != "" && fault.BadText(s.IdempotencyKey, fault.KeyLimit) == "" && (s.Refused != nil || errors.As(err, &refused))
}

// SubmitBatch is Submit for a request whose idempotency key is for the whole batch: the same batch again returns the same executions.
// Another batch fails with ErrIdempotencyMismatch, and nothing of it is stored. A submission with its own key is identified by that key
// alone.
//
// The other submissions get keys that are derived from the batch's key and their place in the batch. That alone would let two different
// batches that come at once each get some places. So the first accepted submission gets the batch's key itself and is committed before the
// others: of several batches one writes that row, and the others find it.
func (e *Engine) SubmitBatch(ctx context.Context, key string, subs []Submission) ([]Submitted, error) {
	if err := fault.CheckText("idempotency_key", key, fault.KeyLimit, "give another one"); err != nil {
		return nil, err
	}
	sums := make([][32]byte, len(subs))
	for i := range subs {
		sums[i] = subs[i].sum()
	}
	first := &batchOp{key: key, hash: batchHash(subs, sums), length: len(subs)}
	out := make([]Submitted, len(subs))
	ops := make([]*submitOp, len(subs)) // nil: its verdict is known
	for i := range subs {
		s := subs[i]
		if s.IdempotencyKey == "" {
			s.IdempotencyKey = placeKey(key, i)
		}
		o := &submitOp{hash: sums[i]}
		if err := e.prepare(ctx, &s, o); err != nil {
			out[i].Err = err
			continue
		}
		ops[i] = o
		if subs[i].IdempotencyKey == "" {
			o.hash = placeHash(first.hash, i)
			first.add(o, i)
		}
	}
	first.group = newGroup(1)
	if err := e.enqueue(first); err != nil {
		return nil, err
	}
	if err := first.group.wait(ctx); err != nil {
		return nil, err
	}
	if first.err != nil {
		return nil, first.err
	}
	if at := first.settled; at >= 0 {
		ops[at], out[at] = nil, first.verdict
		if first.verdict.Err == nil && !first.verdict.Existing {
			e.counters.submitted.Add(1)
		}
	}
	if err := e.submit(ctx, slices.DeleteFunc(slices.Clone(ops), func(o *submitOp) bool { return o == nil })...); err != nil {
		return nil, err
	}
	for i, o := range ops {
		if o != nil {
			out[i] = o.verdict
		}
	}
	return out, nil
}

// batchOp checks whether a batch is the one that its key was used for, and submits the first of its executions under that key.
type batchOp struct {
	key     string
	hash    [32]byte  // of the batch
	length  int       // how many submissions the batch has
	derived []string  // keys of the submissions without their own
	first   *submitOp // the first accepted one of these; nil: there is none
	at      int       // its place
	group   *group

	settled int       // index of the submission whose verdict is known; -1: none
	verdict Submitted // on that one
	err     error     // the verdict on the whole batch
}

// add adds the submission at a place of the batch.
func (o *batchOp) add(s *submitOp, at int) {
	o.derived = append(o.derived, s.key)
	if o.first != nil || s.refused != nil {
		return
	}
	first := *s
	first.key, first.request.IdempotencyKey = o.key, o.key
	o.first, o.at = &first, at
}

func (o *batchOp) want(t *transaction) {
	t.wants.idempotency = append(append(t.wants.idempotency, o.key), o.derived...)
	if o.first != nil {
		o.first.want(t)
	}
}

func (o *batchOp) locks() []string {
	if o.first == nil {
		return nil
	}
	return o.first.locks()
}

func (o *batchOp) decide(ctx context.Context, t *transaction) error {
	o.settled, o.err = -1, nil
	if existing, ok := t.loaded.idempotency[o.key]; ok {
		at, same := placeOf(existing.Hash, o.hash)
		if !same || at >= o.length {
			o.err = mismatch(existing)
			return nil
		}
		o.settled, o.verdict = at, Submitted{Execution: existing.Execution, Existing: true}
		return nil
	}
	// Retention may have removed the execution with the batch's key before the others.
	for _, key := range o.derived {
		existing, ok := t.loaded.idempotency[key]
		if _, same := placeOf(existing.Hash, o.hash); ok && !same {
			o.err = mismatch(existing)
			return nil
		}
	}
	if o.first == nil {
		return nil
	}
	if _, ok := t.loaded.idempotency[placeKey(o.key, o.at)]; ok {
		return nil
	}
	err := o.first.decide(ctx, t)
	o.settled, o.verdict = o.at, o.first.verdict
	return err
}

func (o *batchOp) class() class { return classCall }

func (o *batchOp) executions() []flow.ID {
	if o.first == nil {
		return nil
	}
	return o.first.executions()
}

func (o *batchOp) size() int {
	if o.first == nil {
		return 0
	}
	return o.first.size()
}

func (o *batchOp) done(err error) {
	if err != nil {
		o.err = err
	}
	o.group.done()
}

// batchHash distinguishes batches with the same idempotency key.
func batchHash(subs []Submission, sums [][32]byte) [32]byte {
	h := sha256.New()
	for i := range subs {
		h.Write(sums[i][:])
		h.Write(strconv.AppendQuote(nil, subs[i].IdempotencyKey))
	}
	return [32]byte(h.Sum(nil))
}

// placeKey is the idempotency key of a submission at a place in a batch.
func placeKey(batch string, at int) string {
	sum := sha256.Sum256([]byte(batch))
	return "batch:" + hex.EncodeToString(sum[:]) + ":" + strconv.Itoa(at)
}

// placeBytes is how many bytes at the end of a batch's hash are replaced by a place in it.
const placeBytes = 4

// placeHash is the hash of a submission at a place in a batch: it contains the batch and the place.
func placeHash(batch [32]byte, at int) [32]byte {
	binary.BigEndian.PutUint32(batch[len(batch)-placeBytes:], uint32(at))
	return batch
}

// placeOf reads a placeHash, and reports whether it belongs to that batch.
func placeOf(hash, batch [32]byte) (at int, same bool) {
	cut := len(hash) - placeBytes
	return int(binary.BigEndian.Uint32(hash[cut:])), bytes.Equal(hash[:cut], batch[:cut])
}
