package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

// A repeated submission returns its execution even if the definition has changed meanwhile.
func TestResubmissionOfWhatIsNoLongerAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ninput: {type: object, properties: {a: {type: string}}}\ntasks:\n  a: {action: noop}\n")
	s := Submission{Action: "w", Input: json.RawMessage(`{"a":"x"}`), IdempotencyKey: "once"}
	first := r.submit(s)
	r.define("name: w\ninput: {type: object, required: [b], properties: {a: {type: string}, b: {type: string}}}\ntasks:\n  a: {action: noop}\n")

	if out := r.verdict(s); out.Err != nil || !out.Existing || out.Execution != first {
		t.Errorf("the same request with the same key: %+v, not %s", out, first)
	}
	other := s
	other.Input = json.RawMessage(`{"a":"y"}`)
	if out := r.verdict(other); !errors.Is(out.Err, ErrIdempotencyMismatch) {
		t.Errorf("another request with the same key: %+v", out)
	}
	fresh := s
	fresh.IdempotencyKey = "twice"
	var invalid *fault.Invalid
	if out := r.verdict(fresh); !errors.As(out.Err, &invalid) || invalid.Problems[0].Path != "input" {
		t.Errorf("the same request with a fresh key: %+v", out)
	}
	if v, end, err := r.e.SubmitOne(r.ctx, s); err != nil || v.Execution != first || !v.Existing {
		t.Errorf("submitted alone: %+v, %v", v, err)
	} else {
		end.Close()
	}
	if v, end, err := r.e.SubmitOne(r.ctx, fresh); err != nil || !errors.As(v.Err, &invalid) || end != nil {
		t.Errorf("submitted alone with a fresh key: %+v, %v", v, err)
	}
	refused := errors.New("not known here")
	s.Refused, fresh.Refused = refused, refused
	if out := r.verdict(s); out.Execution != first {
		t.Errorf("what its caller refuses by now: %+v", out)
	}
	if out := r.verdict(fresh); !errors.Is(out.Err, refused) {
		t.Errorf("what its caller refuses: %+v", out)
	}
	bad := Submission{Action: "noop", IdempotencyKey: "a\x00b"}
	if out := r.verdict(bad); !errors.As(out.Err, &invalid) {
		t.Errorf("a key with a NUL: %+v", out)
	}
}

// verdict submits one execution.
func (r *rig) verdict(s Submission) Submitted {
	r.Helper()
	out, err := r.e.Submit(r.ctx, []Submission{s})
	if err != nil {
		r.Fatalf("submit: %v", err)
	}
	return out[0]
}

// Equal values have the same hash in any notation.
func TestHashOfASubmission(t *testing.T) {
	t.Parallel()
	hash := func(input string) [32]byte {
		s := Submission{Action: "noop", Input: json.RawMessage(input), Labels: map[string]string{"a": "b"}, IdempotencyKey: "k"}
		return s.hash()
	}
	one := hash(`{"a":1,"b":[1.5,"é"]}`)
	for _, same := range []string{`{"a":1.0,"b":[15e-1,"é"]}`, `{ "b" : [1.50, "\u00e9"], "a": 1e0 }`} {
		if hash(same) != one {
			t.Errorf("%s is another body", same)
		}
	}
	for _, other := range []string{`{"a":2,"b":[1.5,"é"]}`, `{"a":"1","b":[1.5,"é"]}`, `{"a":1,"b":["é",1.5]}`, `{"a":1}`, `{"a":1,`, ``} {
		if hash(other) == one {
			t.Errorf("%s is the same body", other)
		}
	}
}

func batchOf(n int) []Submission {
	subs := make([]Submission, n)
	for i := range subs {
		subs[i] = Submission{Action: "noop", Input: json.RawMessage(fmt.Sprint(i))}
	}
	return subs
}

// batch submits a batch with a key and returns the ids.
func (r *rig) batch(key string, subs []Submission) ([]flow.ID, error) {
	r.Helper()
	out, err := r.e.SubmitBatch(r.ctx, key, subs)
	ids := make([]flow.ID, len(out))
	for i, v := range out {
		if v.Err != nil {
			r.Errorf("item %d: %v", i, v.Err)
		}
		ids[i] = v.Execution
	}
	return ids, err
}

func (r *rig) count() int {
	r.Helper()
	sums, err := r.store.Survey(r.ctx)
	if err != nil {
		r.Fatal(err)
	}
	all := 0
	for _, of := range sums.Stages() {
		all += of
	}
	return all
}

// A batch with a key is one request: the same batch returns the same executions in the same order, another batch none.
func TestBatchWithAKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n = 1200 // more than go into one transaction
	subs := batchOf(n)
	first, err := r.batch("k", subs)
	if err != nil {
		t.Fatal(err)
	}
	subs[17].Input = json.RawMessage("17.0")
	again, err := r.batch("k", subs)
	if err != nil || !slices.Equal(first, again) {
		t.Errorf("the same batch gave others: %v", err)
	}
	if got := r.count(); got != n {
		t.Errorf("%d executions, not %d", got, n)
	}
	changed := slices.Clone(subs)
	changed[n-1].Input = json.RawMessage("-1")
	swapped := slices.Clone(subs)
	swapped[1], swapped[2] = swapped[2], swapped[1]
	keyed := slices.Clone(subs)
	keyed[5].IdempotencyKey = "own"
	for name, other := range map[string][]Submission{
		"an item changed": changed, "one more": append(slices.Clone(subs), Submission{Action: "noop"}), "one fewer": subs[:n-1],
		"the first": subs[:1], "another order": swapped, "an item with a key": keyed, "an invalid item": append(slices.Clone(subs), Submission{Action: "none"}),
	} {
		if out, err := r.e.SubmitBatch(r.ctx, "k", other); !errors.Is(err, ErrIdempotencyMismatch) {
			t.Errorf("%s: %d verdicts, %v", name, len(out), err)
		}
	}
	if out := r.verdict(Submission{Action: "noop", Input: json.RawMessage("0"), IdempotencyKey: "k"}); !errors.Is(out.Err, ErrIdempotencyMismatch) {
		t.Errorf("the first item alone under the batch's key: %+v", out)
	}
	single := r.submit(Submission{Action: "noop", IdempotencyKey: "single"})
	if _, err := r.e.SubmitBatch(r.ctx, "single", batchOf(1)); !errors.Is(err, ErrIdempotencyMismatch) {
		t.Errorf("a batch under the key of %s: %v", single, err)
	}
	if got := r.count(); got != n+1 {
		t.Errorf("%d executions, not %d", got, n+1)
	}
	if other, err := r.batch("k2", subs); err != nil || other[0] == first[0] {
		t.Errorf("another key: %v", err)
	}
	var invalid *fault.Invalid
	if _, err := r.e.SubmitBatch(r.ctx, "a\x00b", subs); !errors.As(err, &invalid) {
		t.Errorf("a key with a NUL: %v", err)
	}
}

// Refused items do not stop the others; when they are accepted later, the batch keeps its other executions.
func TestBatchWithAKeyAndRefusedItems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.submit(Submission{Action: "noop", IdempotencyKey: "taken"})
	submitted := func(want int64) {
		t.Helper()
		if n := r.e.Stats().Submitted; n != want {
			t.Errorf("%d executions are counted as submitted, want %d", n, want)
		}
	}
	subs := []Submission{
		{Action: "later"}, {Action: "noop"}, {Action: "later"}, {Action: "noop", IdempotencyKey: "own"}, {Action: "noop"},
		{Action: "noop", Priority: new(7), IdempotencyKey: "taken"},
	}
	out, err := r.e.SubmitBatch(r.ctx, "k", subs)
	if err != nil {
		t.Fatal(err)
	}
	var invalid *fault.Invalid
	for i, v := range out {
		switch i {
		case 0, 2:
			if !errors.As(v.Err, &invalid) {
				t.Errorf("item %d: %+v", i, v)
			}
		case 5:
			if !errors.Is(v.Err, ErrIdempotencyMismatch) {
				t.Errorf("an item whose own key was taken: %+v", v)
			}
		default:
			if v.Err != nil || v.Existing {
				t.Errorf("item %d: %+v", i, v)
			}
		}
	}
	if v := r.verdict(subs[3]); v.Execution != out[3].Execution || !v.Existing {
		t.Errorf("an item by its own key: %+v", v)
	}
	submitted(4)
	r.define("name: later\naction: noop\n")
	again, err := r.e.SubmitBatch(r.ctx, "k", subs)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 3, 4} {
		if again[i].Execution != out[i].Execution || !again[i].Existing {
			t.Errorf("item %d is %+v, and was %+v", i, again[i], out[i])
		}
	}
	for _, i := range []int{0, 2} {
		if again[i].Err != nil || again[i].Existing {
			t.Errorf("item %d: %+v", i, again[i])
		}
	}
	submitted(6)
	last, err := r.e.SubmitBatch(r.ctx, "k", subs)
	submitted(6)
	for i := range last[:5] {
		if err != nil || last[i].Execution != again[i].Execution {
			t.Errorf("item %d is %+v, and was %+v: %v", i, last[i], again[i], err)
		}
	}
}

// A batch whose items are all refused leaves nothing, not even its key.
func TestBatchWithAKeyAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	out, err := r.e.SubmitBatch(r.ctx, "k", []Submission{{Action: "none"}, {Action: "none"}})
	if err != nil || out[0].Err == nil || out[1].Err == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := r.batch("k", batchOf(2)); err != nil {
		t.Error(err)
	}
}

// If different batches come at once with one key, one is accepted as a whole and the others not at all.
func TestRacingBatchesWithAKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	race := func(key string, variants int) (accepted [][]flow.ID) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				subs := batchOf(40)
				subs[39].Input = json.RawMessage(fmt.Sprint(100 + i%variants))
				if i%variants == 1 {
					subs[0].Action = "none" // another submission is the first accepted one
				}
				out, err := r.e.SubmitBatch(r.ctx, key, subs)
				if errors.Is(err, ErrIdempotencyMismatch) {
					return
				}
				if err != nil {
					t.Error(err)
				}
				var ids []flow.ID
				for _, v := range out {
					ids = append(ids, v.Execution)
				}
				mu.Lock()
				accepted = append(accepted, ids)
				mu.Unlock()
			})
		}
		wg.Wait()
		return accepted
	}
	for i := range 10 {
		for _, variants := range []int{1, 3} {
			accepted := race(fmt.Sprint(variants, "-", i), variants)
			if len(accepted) != 12/variants {
				t.Fatalf("%d of 12 requests with %d bodies were accepted", len(accepted), variants)
			}
			for _, ids := range accepted {
				if !slices.Equal(ids, accepted[0]) {
					t.Fatal("the same batch gave different executions")
				}
			}
		}
	}
}

// A delayed start counts from the first request: a repeated request changes nothing, and does not move it.
func TestStartIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	s := Submission{Action: "noop", StartIn: 10 * time.Minute, IdempotencyKey: "later"}
	id := r.submit(s)
	x := r.get(id)
	if x.Place != flow.Delayed || x.NotBefore.Sub(x.CreatedAt) != 10*time.Minute || !x.WakeAt.Equal(x.NotBefore) {
		t.Errorf("%+v", x)
	}
	r.why(id, "waits for its time", "in 10m")
	r.pass(9 * time.Minute)
	if again := r.submit(s); again != id || !r.get(id).NotBefore.Equal(x.NotBefore) {
		t.Errorf("submitted again: %s, %+v", again, r.get(id))
	}
	if x := r.get(id); x.Place != flow.Delayed {
		t.Errorf("it is %s a minute early", x.Place)
	}
	r.pass(time.Minute)
	if a := h.take(1)[0]; a.Execution != id {
		t.Errorf("%+v", a)
	}
	for _, bad := range []Submission{
		{Action: "noop", StartIn: time.Hour, NotBefore: time.Now()}, {Action: "noop", StartIn: -time.Hour}, {Action: "noop", StartIn: 400 * 24 * time.Hour},
	} {
		if err := r.verdict(bad).Err; err == nil || !strings.Contains(err.Error(), "start_in") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
