package engine

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// batches is a batcher whose clock a test sets. Times are in milliseconds.
type batches struct {
	testing.TB
	b     batcher
	now   time.Time
	begun []*batch
}

// a step of a test of the batcher. Of its fields those that are given happen in their order.
type batchStep struct {
	at        int // milliseconds since the test began
	callers   int // so many calls hand in one request each
	requests  int // one call hands in so many requests
	followUps int // as many workflows are to go on
	wide      int // as many workflows with many children are to go on
	bytes     int // one call hands in one request that holds so many bytes
	keyed     int // one call hands in so many requests that need a key, which is not said to be contended
	contended int // one call hands in so many requests, the last of which needs a contended key
	told      int // as many callers are told of the end that they waited for
	done      int // the end of the batch that began as the so manieth

	waits   int  // the next transaction is to wait for so many milliseconds more
	begins  int  // a transaction begins with so many requests
	answers int  // and with the last requests of so many calls; 0: it does not matter
	nothing bool // a transaction could begin, and there is nothing for it
}

func TestBatcher(t *testing.T) {
	t.Parallel()
	many := 2 * lingerFrom
	tests := []struct {
		name  string
		steps []batchStep
	}{
		{"a lone request goes at once", []batchStep{{requests: 1, begins: 1}, {at: 1, done: 1, nothing: true}, {at: 2, requests: 1, begins: 1}}},
		{"requests during a transaction go together in the next", []batchStep{
			{requests: 1, begins: 1}, {at: 1, requests: 1, waits: 19}, {at: 2, callers: 3, waits: 18}, {at: 3, done: 1, begins: 4}}},
		{"many go beside a transaction", []batchStep{{requests: 1, begins: 1}, {at: 1, requests: besideFrom - 1, waits: 19}, {at: 1, requests: 1, begins: besideFrom}}},
		{"few do not wait for a slow transaction", []batchStep{
			{requests: 1, begins: 1}, {at: 19, requests: 1, waits: 1}, {at: 20, begins: 1},
			// Now they wait for the younger one of the two, also when it has ended before the slow one.
			{at: 21, requests: 1, waits: 19}, {at: 22, done: 2, begins: 1}, {at: 23, done: 1}, {at: 23, requests: 1, waits: 19}, {at: 24, done: 3, begins: 1}}},
		{"the callers of a transaction are waited for", []batchStep{
			{callers: many, begins: many}, {at: 4, done: 1}, {at: 4, callers: 1, waits: 1}, {at: 5, begins: 1}}},
		{"half of them are enough", []batchStep{
			{callers: many, begins: many}, {at: 4, done: 1}, {at: 4, callers: many/2 - 1, waits: 1}, {at: 4, callers: 1, begins: many / 2}}},
		{"callers that are told of an end are waited for", []batchStep{
			{requests: many, begins: many}, {at: 4, told: many, done: 1}, {at: 4, callers: 1, waits: 1}, {at: 4, callers: many/2 - 1, begins: many / 2},
			{at: 8, done: 2}, {at: 20, requests: many, begins: many}, {at: 24, done: 3}, {at: 24, requests: 1, begins: 1}}},
		{"the pause is bounded", []batchStep{{callers: many, begins: many}, {at: 4000, done: 1}, {at: 4000, callers: 1, waits: 2}, {at: 4002, begins: 1}}},
		{"a single caller is not waited for", []batchStep{{requests: many, begins: many}, {at: 4, done: 1}, {at: 4, requests: 1, begins: 1}}},
		{"few callers are not waited for", []batchStep{{callers: lingerFrom - 1, begins: lingerFrom - 1}, {at: 4, done: 1}, {at: 4, callers: 1, begins: 1}}},
		{"a shorter pause leaves a longer one", []batchStep{
			{callers: many, begins: many}, {at: 1, callers: besideFrom, begins: besideFrom}, {at: 8, done: 1}, {at: 8, done: 2},
			{at: 8, callers: 1, waits: 2}, {at: 8, callers: many/2 - 1, begins: many / 2}}},
		{"a transaction is bounded", []batchStep{{requests: batchLimit + 10, begins: batchLimit}, {at: 1, done: 1, begins: 10}}},
		{"follow-ups alternate with callers", []batchStep{
			{followUps: 2*followUpLimit + 1, requests: 1, begins: followUpLimit}, {at: 1, done: 1, begins: 1}, {at: 2, done: 2, requests: 2, begins: followUpLimit},
			{at: 3, done: 3, begins: 2}, {at: 4, done: 4, begins: 1}, {at: 5, done: 5, nothing: true}}},
		{"wide workflows go alone and one at a time", []batchStep{
			{wide: 2, begins: 1}, {at: 20, nothing: true}, {at: 21, requests: 1, begins: 1}, {at: 22, done: 1, waits: 19}, {at: 23, done: 2, begins: 1}}},
		{"a small call goes before a large one", []batchStep{
			{requests: batchLimit - 1, begins: batchLimit - 1}, {at: 1, requests: batchLimit, waits: 0, begins: batchLimit}, {at: 1, requests: 3 * batchLimit / 2}, {at: 1, requests: 1},
			{at: 2, done: 2}, {at: 2, begins: batchLimit, answers: 1}, {at: 3, done: 3, begins: batchLimit/2 + 1, answers: 1}}},
		{"small calls leave half to large ones", []batchStep{
			{requests: 2 * batchLimit, begins: batchLimit}, {at: 1, callers: batchLimit, begins: batchLimit, answers: batchLimit / 2}}},
		{"a request that fills a transaction has its turn", []batchStep{
			{requests: 1, begins: 1}, {at: 1, bytes: batchBytes + 1, callers: 600}, {at: 30, begins: 600}, {at: 31, callers: 600, begins: 1}, {at: 32, begins: 600}}},
		{"calls that need contended keys go alone, one batch at a time", []batchStep{
			{contended: 40, requests: 1, begins: 40}, {at: 20, begins: 1}, {at: 21, contended: 2, waits: 19}, {at: 22, requests: besideFrom, begins: besideFrom},
			{at: 23, done: 2}, {at: 24, done: 3}, {at: 50, nothing: true}, {at: 51, done: 1, begins: 2}}},
		{"contended calls alternate with plain ones", []batchStep{
			{contended: 1, requests: 1, begins: 1}, {at: 1, done: 1}, {at: 1, contended: 2, begins: 1}, {at: 2, done: 2, requests: 3, begins: 2}, {at: 3, done: 3, begins: 3}}},
		{"a key is contended for a while", []batchStep{
			{contended: 1, begins: 1}, {at: int(contendedFor/time.Millisecond) + 1, keyed: 1, requests: 1, begins: 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			s := &batches{TB: t, now: began}
			for i, step := range tt.steps {
				s.now = began.Add(time.Duration(step.at) * time.Millisecond)
				s.step(i, step)
			}
		})
	}
}

func (s *batches) step(i int, step batchStep) {
	s.Helper()
	for range step.callers {
		s.add(1)
	}
	if step.requests > 0 {
		s.add(step.requests)
	}
	s.b.wokenWaiters += step.told
	if step.bytes > 0 {
		if err := s.b.add([]op{&submitOp{request: flow.Request{Input: make([]byte, step.bytes)}}}, s.now); err != nil {
			s.Fatal(err)
		}
	}
	if step.contended > 0 {
		s.b.contention.waited([]string{"key"}, contendedFrom, s.now)
		s.addKeyed(step.contended)
	}
	if step.keyed > 0 {
		s.addKeyed(step.keyed)
	}
	for n := range step.followUps {
		s.b.followUps.add(&advanceOp{id: flow.ID{1, byte(n >> 8), byte(n)}})
	}
	for n := range step.wide {
		s.b.followUps.add(&advanceOp{id: flow.ID{2, byte(n)}, wide: true})
	}
	if step.done > 0 {
		s.b.done(s.begun[step.done-1], s.now)
	}
	if step.waits+step.begins == 0 && !step.nothing {
		return
	}
	if wait := max(0, s.b.wait(s.now)); wait != time.Duration(step.waits)*time.Millisecond {
		s.Fatalf("step %d: the next transaction waits for %s, not %d ms", i, wait, step.waits)
	}
	if step.waits > 0 {
		return
	}
	b := s.b.next(false, s.now)
	if len(b.ops) != step.begins {
		s.Fatalf("step %d: a transaction of %d requests begins, not of %d", i, len(b.ops), step.begins)
	}
	if step.answers > 0 && b.callers != step.answers {
		s.Fatalf("step %d: the transaction answers %d calls, not %d", i, b.callers, step.answers)
	}
	if len(b.ops) > 0 {
		s.b.begin(b, s.now)
		s.begun = append(s.begun, b)
	}
}

func submissions(n int) []op {
	ops := make([]op, n)
	for i := range ops {
		ops[i] = &submitOp{}
	}
	return ops
}

// add hands in the requests of one call.
func (s *batches) add(n int) {
	s.Helper()
	if err := s.b.add(submissions(n), s.now); err != nil {
		s.Fatal(err)
	}
}

// addKeyed hands in the requests of one call, the last of which needs a key.
func (s *batches) addKeyed(n int) {
	s.Helper()
	ops := submissions(n)
	ops[n-1] = &submitOp{request: flow.Request{Key: "key"}}
	if err := s.b.add(ops, s.now); err != nil {
		s.Fatal(err)
	}
}

// Callers get ErrOverloaded when too many requests wait, or too many bytes; a request larger than all that may wait goes when it
// is alone.
func TestBatcherIsBounded(t *testing.T) {
	t.Parallel()
	var b batcher
	now := time.Now()
	if err := b.add(submissions(pendingLimit), now); err != nil {
		t.Fatal(err)
	}
	if err := b.add(submissions(1), now); err != ErrOverloaded {
		t.Errorf("one more than may wait: %v", err)
	}
	huge := &submitOp{request: flow.Request{Input: make([]byte, pendingBytes+1)}}
	b = batcher{}
	if err := b.add([]op{huge}, now); err != nil {
		t.Errorf("a large request alone: %v", err)
	}
	if err := b.add(submissions(1), now); err != ErrOverloaded {
		t.Errorf("one beside it: %v", err)
	}
	renewal := newRequest(nil, classSession, func(context.Context, *transaction) (struct{}, error) { return struct{}{}, nil })
	if err := b.add([]op{renewal}, now); err != nil {
		t.Errorf("what a session asks: %v", err)
	}
	if x := b.next(false, now); len(x.ops) == 0 || x.ops[0] != op(renewal) {
		t.Errorf("what a session asks is not the first in a batch of %d", len(x.ops))
	}
	if err := b.add(submissions(1), now); err != nil {
		t.Errorf("one after it: %v", err)
	}
}
