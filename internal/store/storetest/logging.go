package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func (b *bench) logs(q store.LogQuery) []flow.LogChunk {
	b.Helper()
	if q.Limit == 0 {
		q.Limit = 1 << 20
	}
	all, err := b.s.ReadLogs(b.ctx(), q)
	must(b, err)
	return all
}

func logs(b *bench) {
	id, other := b.id(), b.id() // logs may be read before the execution is known
	chunk := func(attempt int, seq int64, stream string, offset int64, data string) flow.LogChunk {
		return flow.LogChunk{Execution: id, Attempt: attempt, Seq: seq, Stream: stream, Offset: offset,
			At: b.now.Add(time.Duration(seq) * time.Millisecond), Data: []byte(data), Size: int64(len(data))}
	}
	all := []flow.LogChunk{
		chunk(1, 1, "stdout", 0, "one\n"), chunk(1, 2, "stderr", 0, "\x00\xff oops"), chunk(1, 3, "stdout", 4, "three\n"),
		{Execution: id, Attempt: 1, Seq: 4, Stream: "stdout", Offset: 10, At: b.now, Blob: "ex_1/logs/4", Size: 500},
		chunk(2, 1, "stdout", 0, "again\n"),
	}
	must(b, b.s.AppendLogs(b.ctx(), []flow.LogChunk{all[2], all[0]})) // in any order
	must(b, b.s.AppendLogs(b.ctx(), nil))
	again := all[0]
	again.Data = []byte("something else")
	must(b, b.s.AppendLogs(b.ctx(), []flow.LogChunk{again, all[1], all[3], all[4], all[4]}))
	elsewhere := all[0]
	elsewhere.Execution = other
	must(b, b.s.AppendLogs(b.ctx(), []flow.LogChunk{elsewhere}))
	for _, c := range []struct {
		say  string
		q    store.LogQuery
		want []flow.LogChunk
	}{
		{"everything", store.LogQuery{}, all},
		{"an attempt", store.LogQuery{Attempt: 1}, all[:4]},
		{"the second attempt", store.LogQuery{Attempt: 2}, all[4:]},
		{"an attempt that never was", store.LogQuery{Attempt: 3}, nil},
		{"a stream", store.LogQuery{Stream: "stdout"}, []flow.LogChunk{all[0], all[2], all[3], all[4]}},
		{"a stream of an attempt", store.LogQuery{Attempt: 1, Stream: "stderr"}, all[1:2]},
		{"after a chunk", store.LogQuery{AfterAttempt: 1, AfterSeq: 2}, all[2:]},
		{"after the last of an attempt", store.LogQuery{AfterAttempt: 1, AfterSeq: 99}, all[4:]},
		{"after everything", store.LogQuery{AfterAttempt: 2, AfterSeq: 1}, nil},
		{"after a chunk, in an attempt", store.LogQuery{Attempt: 1, AfterAttempt: 1, AfterSeq: 3}, all[3:4]},
		{"from the start of a chunk", store.LogQuery{Attempt: 1, Stream: "stdout", Offset: 4}, []flow.LogChunk{all[2], all[3]}},
		{"from within a chunk", store.LogQuery{Attempt: 1, Stream: "stdout", Offset: 9}, []flow.LogChunk{all[2], all[3]}},
		{"from the middle of a blob", store.LogQuery{Attempt: 1, Stream: "stdout", Offset: 300}, all[3:4]},
		{"the tail, as long as the last chunk", store.LogQuery{Tail: 6}, all[4:]},
		{"the tail, a byte longer", store.LogQuery{Tail: 7}, all[3:]},
		{"the tail of a stream", store.LogQuery{Stream: "stdout", Tail: 507}, []flow.LogChunk{all[2], all[3], all[4]}},
		{"the tail of a stream of an attempt", store.LogQuery{Attempt: 1, Stream: "stderr", Tail: 1}, all[1:2]},
		{"a tail longer than all", store.LogQuery{Tail: 1 << 40}, all},
		{"a tail behind a cursor", store.LogQuery{Tail: 1, AfterAttempt: 1, AfterSeq: 2}, all[2:]},
		{"before a chunk", store.LogQuery{BeforeAttempt: 1, BeforeSeq: 3}, all[:2]},
		{"before an attempt", store.LogQuery{BeforeAttempt: 2, BeforeSeq: 1}, all[:4]},
		{"before a seq that never was", store.LogQuery{BeforeAttempt: 1, BeforeSeq: 99}, all[:4]},
		{"before everything", store.LogQuery{BeforeAttempt: 1, BeforeSeq: 1}, nil},
		{"between two", store.LogQuery{AfterAttempt: 1, AfterSeq: 1, BeforeAttempt: 2, BeforeSeq: 1}, all[1:4]},
		{"a stream of an attempt, before a chunk", store.LogQuery{Attempt: 1, Stream: "stdout", BeforeAttempt: 1, BeforeSeq: 4}, []flow.LogChunk{all[0], all[2]}},
		{"the tail before a chunk", store.LogQuery{Tail: 6, BeforeAttempt: 1, BeforeSeq: 4}, all[2:3]},
		{"the tail before a chunk, a byte longer", store.LogQuery{Tail: 7, BeforeAttempt: 1, BeforeSeq: 4}, all[1:3]},
		{"the tail of a stream before an attempt", store.LogQuery{Stream: "stdout", Tail: 501, BeforeAttempt: 2, BeforeSeq: 1}, all[2:4]},
		{"from beyond the end", store.LogQuery{Attempt: 1, Stream: "stdout", Offset: 510}, nil},
	} {
		c.q.Execution = id
		equal(b, c.say, b.logs(c.q), c.want)
	}
	equal(b, "of another execution", b.logs(store.LogQuery{Execution: other}), []flow.LogChunk{elsewhere})
	equal(b, "of an unknown one", len(b.logs(store.LogQuery{Execution: b.id()})), 0)
}

// logPages checks the limit in bytes, and reading with the cursor.
func logPages(b *bench) {
	id := flow.ID{7}
	var want strings.Builder
	for i := range 40 {
		data := strings.Repeat(fmt.Sprint(i%10), 100)
		must(b, b.s.AppendLogs(b.ctx(), []flow.LogChunk{{Execution: id, Attempt: 1, Seq: int64(i + 1), Stream: "stdout",
			Offset: int64(want.Len()), At: b.now, Data: []byte(data), Size: 100}}))
		want.WriteString(data)
	}
	for _, limit := range []int64{1, 100, 101, 1000, 1 << 20} {
		var got strings.Builder
		q := store.LogQuery{Execution: id, Limit: limit}
		for {
			page := b.logs(q)
			if len(page) == 0 {
				break
			}
			if size := int64(len(page)) * 100; size > limit+100 {
				b.Fatalf("a page of about %d bytes has %d", limit, size)
			}
			for _, k := range page {
				got.Write(k.Data)
				q.AfterAttempt, q.AfterSeq = k.Attempt, k.Seq
			}
		}
		if got.String() != want.String() {
			b.Errorf("in pages of %d bytes: %d bytes, want %d", limit, got.Len(), want.Len())
		}
	}
}
