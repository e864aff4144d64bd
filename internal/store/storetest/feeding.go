package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// feed commits a piece of input at the end of the execution's input.
func (b *bench) feed(id flow.ID, data string, last bool) {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) error {
		in, err := t.FedInput(ctx, id)
		if err != nil {
			return err
		}
		return t.Apply(ctx, store.Delta{Input: []store.InputPiece{
			{Execution: id, Number: in.Pieces + 1, Offset: in.Size, Data: []byte(data), Last: last}}})
	})
}

// given checks the size of an execution's input, as readers and as decisions see it.
func (b *bench) given(say string, id flow.ID, want flow.Input) {
	b.Helper()
	got, err := b.s.FedInput(b.ctx(), id)
	must(b, err)
	equal(b, say, got, want)
	equal(b, say+", in a transaction", inTx(b, func(ctx context.Context, t store.Tx) (flow.Input, error) { return t.FedInput(ctx, id) }), want)
}

// input checks the input from an offset on, as readers and as decisions read it.
func (b *bench) input(id flow.ID, from, limit int64, want string, wantLast bool) {
	b.Helper()
	say := fmt.Sprintf("input from %d, %d bytes", from, limit)
	data, last, err := b.s.ReadInput(b.ctx(), id, from, limit)
	must(b, err)
	if string(data) != want || last != wantLast {
		b.Errorf("%s: %.60q, the last: %v; want %.60q, %v", say, data, last, want, wantLast)
	}
	b.update(func(ctx context.Context, t store.Tx) (err error) {
		data, last, err = t.ReadInput(ctx, id, from, limit)
		return err
	})
	if string(data) != want || last != wantLast {
		b.Errorf("%s, in a transaction: %.60q, the last: %v; want %.60q, %v", say, data, last, want, wantLast)
	}
}

func feeding(b *bench) {
	id, other := b.claimed(flow.ID{9}), b.claimed(flow.ID{9})
	b.given("before anything was given", id, flow.Input{})
	b.input(id, 0, 100, "", false)
	b.given("an unknown execution", b.id(), flow.Input{})
	b.input(b.id(), 0, 100, "", false)

	b.feed(id, "one\n", false)
	b.feed(id, "\x00\xfftwo\n", false)
	b.feed(other, "else", false)
	b.given("two pieces", id, flow.Input{Pieces: 2, Size: 10})
	for _, c := range []struct {
		from, limit int64
		want        string
	}{
		{0, 100, "one\n\x00\xfftwo\n"}, {0, 1, "one\n"}, {0, 4, "one\n"}, {0, 5, "one\n\x00\xfftwo\n"},
		{2, 2, "e\n"}, {2, 3, "e\n\x00\xfftwo\n"}, // the limit counts from the offset, not from the start of its piece
		{2, 100, "e\n\x00\xfftwo\n"}, {4, 100, "\x00\xfftwo\n"}, {9, 100, "\n"}, {10, 100, ""}, {11, 100, ""},
	} {
		b.input(id, c.from, c.limit, c.want, false)
	}
	b.feed(id, "", true)
	b.given("the end alone", id, flow.Input{Pieces: 3, Size: 10, Closed: true})
	b.input(id, 0, 100, "one\n\x00\xfftwo\n", true)
	b.input(id, 0, 4, "one\n", false)
	b.input(id, 10, 100, "", true)
	b.feed(other, "where", true)
	b.given("the end with the last piece", other, flow.Input{Pieces: 2, Size: 9, Closed: true})
	b.input(other, 0, 1, "else", false)
	b.input(other, 4, 100, "where", true)
	b.input(other, 9, 100, "", true)

	// The first piece stays: another piece for the same offset undoes its whole transaction.
	piece := store.InputPiece{Execution: id, Number: 2, Offset: 4, Data: []byte("2")}
	bystander := b.submit()
	wantErr(b, "a second piece for an offset", b.try(store.Delta{Drafts: []*flow.Draft{bystander}, Input: []store.InputPiece{piece}}), store.ErrConflict)
	if _, err := b.s.Get(b.ctx(), bystander.ID); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("what went with a conflict: %v, want %v", err, store.ErrNotFound)
	}
	b.input(id, 0, 100, "one\n\x00\xfftwo\n", true)

	// The input is removed with its execution, and not before.
	b.report(id, flow.EvRunning, flow.EvCompleted)
	b.input(id, 0, 100, "one\n\x00\xfftwo\n", true)
	b.remove([]flow.ID{id}...)
	b.given("after its removal", id, flow.Input{})
	b.input(id, 0, 100, "", false)
	b.input(other, 0, 4, "else", false)
}

// feedingWithin checks that a decision sees input that its transaction has added before.
func feedingWithin(b *bench) {
	d := b.submit()
	b.update(func(ctx context.Context, t store.Tx) error {
		must(b, t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}, Input: []store.InputPiece{{Execution: d.ID, Number: 1, Data: []byte("ab")}}}))
		must(b, t.Apply(ctx, store.Delta{Input: []store.InputPiece{{Execution: d.ID, Number: 2, Offset: 2, Data: []byte("cd"), Last: true}}}))
		in, err := t.FedInput(ctx, d.ID)
		must(b, err)
		equal(b, "within the transaction", in, flow.Input{Pieces: 2, Size: 4, Closed: true})
		data, last, err := t.ReadInput(ctx, d.ID, 1, 100)
		must(b, err)
		if string(data) != "bcd" || !last {
			b.Errorf("within the transaction: %q, the last: %v", data, last)
		}
		return nil
	})
	b.input(d.ID, 0, 100, "abcd", true)
}

// feedingPages reads long input, and a large piece, in pages.
func feedingPages(b *bench) {
	id := b.claimed(flow.ID{9})
	var want strings.Builder
	for i := range 1200 {
		piece := strings.Repeat(string(rune('a'+i%26)), 1+i%7)
		want.WriteString(piece)
		b.feed(id, piece, false)
	}
	large := strings.Repeat("large", 100_000)
	want.WriteString(large)
	b.feed(id, large, true)
	for _, limit := range []int64{1, 100, 1 << 20} {
		var got strings.Builder
		for last := false; !last; {
			var data []byte
			var err error
			data, last, err = b.s.ReadInput(b.ctx(), id, int64(got.Len()), limit)
			must(b, err)
			if int64(len(data)) > limit+int64(len(large)) || (len(data) == 0 && !last) {
				b.Fatalf("a page of about %d bytes has %d", limit, len(data))
			}
			got.Write(data)
		}
		if got.String() != want.String() {
			b.Errorf("in pages of %d bytes: %d bytes, want %d", limit, got.Len(), want.Len())
		}
	}
}

// racingFeeds feeds one execution concurrently: under its lock every piece gets its place.
func racingFeeds(b *bench) {
	id := b.claimed(flow.ID{9})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
					if _, err := t.Lock(ctx, []flow.ID{id}, store.WithoutPayload); err != nil {
						return err
					}
					in, err := t.FedInput(ctx, id)
					if err != nil {
						return err
					}
					return t.Apply(ctx, store.Delta{Input: []store.InputPiece{{Execution: id, Number: in.Pieces + 1, Offset: in.Size, Data: []byte("abc")}}})
				})
				if err != nil {
					b.Errorf("feed: %v", err)
				}
			}
		})
	}
	wg.Wait()
	b.given("after the race", id, flow.Input{Pieces: 80, Size: 240})
	b.input(id, 0, 1000, strings.Repeat("abc", 80), false)
}
