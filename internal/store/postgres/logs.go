package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var logChunks = relation[*flow.LogChunk, *flow.LogChunk]{
	{"id", oidUUID, func(c *column, k *flow.LogChunk) { c.id(k.Execution) }, func(r *rows, k *flow.LogChunk) { k.Execution = r.id() }},
	{"attempt", oidInt4, func(c *column, k *flow.LogChunk) { c.int(int64(k.Attempt)) }, func(r *rows, k *flow.LogChunk) { k.Attempt = int(r.int()) }},
	{"seq", oidInt8, func(c *column, k *flow.LogChunk) { c.int(k.Seq) }, func(r *rows, k *flow.LogChunk) { k.Seq = r.int() }},
	{"stream", oidText, func(c *column, k *flow.LogChunk) { c.text(k.Stream) }, func(r *rows, k *flow.LogChunk) { k.Stream = r.text() }},
	{"start", oidInt8, func(c *column, k *flow.LogChunk) { c.int(k.Offset) }, func(r *rows, k *flow.LogChunk) { k.Offset = r.int() }},
	{"at", oidInt8, func(c *column, k *flow.LogChunk) { c.int(row.Micros(k.At)) }, func(r *rows, k *flow.LogChunk) { k.At = r.time() }},
	{"size", oidInt8, func(c *column, k *flow.LogChunk) { c.int(k.Size) }, func(r *rows, k *flow.LogChunk) { k.Size = r.int() }},
	{"blob", oidText, func(c *column, k *flow.LogChunk) { c.textOrNull(k.Blob) }, func(r *rows, k *flow.LogChunk) { k.Blob = r.text() }},
	{"data", oidBytes, func(c *column, k *flow.LogChunk) { c.bytesOrNull(k.Data) }, func(r *rows, k *flow.LogChunk) { k.Data = r.bytes() }},
}

var (
	qInsertChunks = sql(logChunks.insert("chunks") + ` ON CONFLICT DO NOTHING`)

	// The sizes are summed up in order, so that the page ends when it is long enough and later chunks are not sent.
	qChunks = sql(`SELECT ` + logChunks.names("") + ` FROM (
		SELECT *, sum(size) OVER (ORDER BY attempt, seq) - size AS before FROM (
			SELECT * FROM {s}.chunks WHERE id = $1 AND attempt >= $2::bigint AND attempt <= $3::bigint
			AND (attempt, seq) > ($4::bigint, $5::bigint) AND ($6::text IS NULL OR stream = $6) AND start + size > $7::bigint
			AND (attempt, seq) < ($10::bigint, $11::bigint) ORDER BY attempt, seq LIMIT $9) page) c
		WHERE before < $8::bigint OR before = 0 ORDER BY attempt, seq`)

	// The sizes are summed up from the end, so that the rows before the tail are not read.
	qTail = sql(`SELECT attempt, seq FROM (SELECT attempt, seq, sum(size) OVER (ORDER BY attempt DESC, seq DESC) AS behind FROM {s}.chunks
		WHERE id = $1 AND attempt >= $2::bigint AND attempt <= $3::bigint AND ($4::text IS NULL OR stream = $4)
		AND (attempt, seq) < ($6::bigint, $7::bigint)) c
		WHERE behind >= $5::bigint ORDER BY attempt DESC, seq DESC LIMIT 1`)

	qDeleteChunks = sql(`WITH gone AS (DELETE FROM {s}.chunks WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM {s}.chunks WHERE id = ANY ($1::uuid[]) LIMIT $2)) RETURNING 1) SELECT count(*) FROM gone`)

	qLazily = sql(`SET LOCAL synchronous_commit = off`)
)

// AppendLogs implements store.Logs. It does not wait for the disk, so a power failure may lose the logs of the last moments.
func (s *Store) AppendLogs(ctx context.Context, chunks []flow.LogChunk) error {
	if len(chunks) == 0 {
		return nil
	}
	var t columns
	logChunks.begin(&t)
	for i := range chunks {
		logChunks.add(&t, &chunks[i])
	}
	calls := []call{{q: qBegin}, {q: qLazily}, {q: qInsertChunks, params: new(args).columns(&t).params}, {q: qCommit}}
	if err := s.read(ctx, calls...); err != nil {
		return fmt.Errorf("append logs: %w", err)
	}
	var told news
	for i := range chunks {
		if id := chunks[i].Execution; chunks[i].Prompt && !slices.Contains(told.executions, id) {
			told.executions = append(told.executions, id)
		}
	}
	s.notifier.announce(told)
	return nil
}

const mostChunks = 1000

func (s *Store) ReadLogs(ctx context.Context, q store.LogQuery) (all []flow.LogChunk, err error) {
	from, to := int64(0), int64(math.MaxInt32)
	if q.Attempt > 0 {
		from, to = int64(q.Attempt), int64(q.Attempt)
	}
	offset := int64(-1)
	if q.Offset > 0 {
		offset = q.Offset
	}
	before, beforeSeq := q.Bound()
	if q.Tail > 0 && q.AfterAttempt == 0 && q.AfterSeq == 0 {
		var a args
		a.id(q.Execution).int(from).int(to).textOrNull(q.Stream).int(q.Tail).int(int64(before)).int(beforeSeq)
		err := s.read(ctx, call{q: qTail, params: a.params, read: func(r *rows) error {
			q.AfterAttempt, q.AfterSeq = int(r.int()), r.int()-1
			return nil
		}})
		if err != nil {
			return nil, fmt.Errorf("look for the tail of the logs of %s: %w", q.Execution, err)
		}
	}
	var a args
	a.id(q.Execution).int(max(from, int64(q.AfterAttempt))).int(to).int(int64(q.AfterAttempt)).int(q.AfterSeq).textOrNull(q.Stream)
	a.int(offset).int(q.Limit).int(mostChunks).int(int64(before)).int(beforeSeq)
	err = s.read(ctx, call{q: qChunks, params: a.params, read: readInto(&all, logChunks)})
	return store.Result(all, err, "read logs of %s", q.Execution)
}

// removeChunks is how many chunks one statement deletes: 200 of up to 100 KB each are 20 MB.
const removeChunks = 200

func (s *Store) RemoveLogs(ctx context.Context, ids []flow.ID) error {
	for gone := int64(removeChunks); gone == removeChunks; {
		err := s.read(ctx, call{q: qDeleteChunks, params: new(args).ids(ids).int(removeChunks).params, read: readTo(&gone, (*rows).int)})
		if err != nil {
			return fmt.Errorf("remove logs: %w", err)
		}
	}
	return nil
}
