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

var (
	qInsertChunks = sql(`INSERT INTO {s}.chunks (id, attempt, seq, stream, start, at, size, blob, data)
		SELECT * FROM ` + rowsOf("id uuid, attempt integer, seq bigint, stream text, start bigint, at bigint, size bigint, blob text, data bytea") + ` AS v
		ON CONFLICT DO NOTHING`)

	// Rows are summed up in order, so that a page ends where it is long enough and the rest is not sent.
	qChunks = sql(`SELECT attempt, seq, stream, start, at, size, blob, data FROM (
		SELECT *, sum(size) OVER (ORDER BY attempt, seq) - size AS before FROM (
			SELECT * FROM {s}.chunks WHERE id = $1 AND attempt >= $2::bigint AND attempt <= $3::bigint
			AND (attempt, seq) > ($4::bigint, $5::bigint) AND ($6::text IS NULL OR stream = $6) AND start + size > $7::bigint
			ORDER BY attempt, seq LIMIT $9) page) c
		WHERE before < $8::bigint OR before = 0 ORDER BY attempt, seq`)

	qDeleteChunks = sql(`WITH gone AS (DELETE FROM {s}.chunks WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM {s}.chunks WHERE id = ANY ($1::uuid[]) LIMIT $2)) RETURNING 1) SELECT count(*) FROM gone`)

	qLazily = sql(`SET LOCAL synchronous_commit = off`)
)

// AppendLogs implements store.Logs. It does not wait for the disk: what a power cut takes is the last moments' output.
func (s *Store) AppendLogs(ctx context.Context, chunks []flow.LogChunk) error {
	if len(chunks) == 0 {
		return nil
	}
	var t columns
	c := t.begin(oidUUID, oidInt4, oidInt8, oidText, oidInt8, oidInt8, oidInt8, oidText, oidBytes)
	for i := range chunks {
		k := &chunks[i]
		c[0].id(k.Execution)
		c[1].int(int64(k.Attempt))
		c[2].int(k.Seq)
		c[3].text(k.Stream)
		c[4].int(k.Offset)
		c[5].int(row.Micros(k.At))
		c[6].int(k.Size)
		c[7].textOrNull(k.Blob)
		c[8].bytes(k.Data)
	}
	var a args
	calls := []call{{q: qBegin}, {q: qLazily}, {q: qInsertChunks, params: a.columns(&t).params}, {q: qCommit}}
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

// mostChunks is how many chunks one page has at the most.
const mostChunks = 1000

// ReadLogs implements store.Logs.
func (s *Store) ReadLogs(ctx context.Context, q store.LogQuery) (all []flow.LogChunk, err error) {
	from, to := int64(0), int64(math.MaxInt32)
	if q.Attempt > 0 {
		from, to = int64(q.Attempt), int64(q.Attempt)
	}
	offset := int64(-1)
	if q.Offset > 0 {
		offset = q.Offset
	}
	var a args
	a.id(q.Execution).int(max(from, int64(q.AfterAttempt))).int(to).int(int64(q.AfterAttempt)).int(q.AfterSeq)
	if q.Stream == "" {
		a.null()
	} else {
		a.text(q.Stream)
	}
	a.int(offset).int(q.Limit).int(mostChunks)
	err = s.read(ctx, call{q: qChunks, params: a.params, read: func(r *rows) error {
		k := flow.LogChunk{Execution: q.Execution, Attempt: int(r.int()), Seq: r.int(), Stream: r.text(), Offset: r.int()}
		k.At = r.time()
		k.Size = r.int()
		k.Blob = r.text()
		k.Data = r.bytes()
		all = append(all, k)
		return nil
	}})
	if err != nil {
		return nil, fmt.Errorf("read logs of %s: %w", q.Execution, err)
	}
	return all, nil
}

// removeChunks is how many chunks one statement deletes: of 100 KB each they are 20 MB.
const removeChunks = 200

// RemoveLogs implements store.Logs.
func (s *Store) RemoveLogs(ctx context.Context, ids []flow.ID) error {
	for gone := int64(removeChunks); gone == removeChunks; {
		var a args
		err := s.read(ctx, call{q: qDeleteChunks, params: a.ids(ids).int(removeChunks).params, read: func(r *rows) error {
			gone = r.int()
			return nil
		}})
		if err != nil {
			return fmt.Errorf("remove logs: %w", err)
		}
	}
	return nil
}
