package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var chunks = relation[*flow.LogChunk, *flow.LogChunk]{
	{"execution", func(s *stmt, k *flow.LogChunk) { s.id(k.Execution) }, func(s *stmt, k *flow.LogChunk) { k.Execution = s.getID() }},
	{"attempt", func(s *stmt, k *flow.LogChunk) { s.int(int64(k.Attempt)) }, func(s *stmt, k *flow.LogChunk) { k.Attempt = int(s.getInt()) }},
	{"seq", func(s *stmt, k *flow.LogChunk) { s.int(k.Seq) }, func(s *stmt, k *flow.LogChunk) { k.Seq = s.getInt() }},
	{"stream", func(s *stmt, k *flow.LogChunk) { s.text(k.Stream) }, func(s *stmt, k *flow.LogChunk) { k.Stream = s.getText() }},
	{"offset", func(s *stmt, k *flow.LogChunk) { s.int(k.Offset) }, func(s *stmt, k *flow.LogChunk) { k.Offset = s.getInt() }},
	{"at", func(s *stmt, k *flow.LogChunk) { s.time(k.At) }, func(s *stmt, k *flow.LogChunk) { k.At = s.getTime() }},
	{"size", func(s *stmt, k *flow.LogChunk) { s.int(k.Size) }, func(s *stmt, k *flow.LogChunk) { k.Size = s.getInt() }},
	{"blob", func(s *stmt, k *flow.LogChunk) { s.textOrNull(k.Blob) }, func(s *stmt, k *flow.LogChunk) { k.Blob = s.getText() }},
	{"data", func(s *stmt, k *flow.LogChunk) { s.blob(k.Data) }, func(s *stmt, k *flow.LogChunk) { k.Data = s.getBlob() }},
}

var (
	qInsertChunk = sql(`INSERT OR IGNORE` + strings.TrimPrefix(chunks.insert("chunks"), "INSERT"))

	// Offset and stream are optional: offset -1 and stream NULL match everything.
	qChunks = sql(`SELECT ` + chunks.names("") + ` FROM chunks
		WHERE execution = ? AND attempt >= ? AND attempt <= ? AND (attempt, seq) > (?, ?) AND (attempt, seq) < (?, ?)
		AND (? IS NULL OR stream = ?) AND offset + size > ? ORDER BY attempt, seq`)

	qChunkSizes = sql(`SELECT attempt, seq, size FROM chunks WHERE execution = ? AND attempt >= ? AND attempt <= ? AND (attempt, seq) < (?, ?) AND (? IS NULL OR stream = ?)
		ORDER BY attempt DESC, seq DESC`)

	qDeleteChunks = sql(`DELETE FROM chunks WHERE rowid IN (SELECT rowid FROM chunks WHERE execution = ? LIMIT ?)`)
)

// logs is the second database. Its commits do not wait for the disk, so a power failure may lose the logs of the last moments.
type logs struct {
	writeToken chan struct{}
	w          *conn
	readers    chan *conn
	wal        *checkpointer
}

func openLogs(path string, now func() time.Time, inMemory, asIs bool) (_ *logs, err error) {
	sync := "NORMAL"
	if inMemory {
		sync = "OFF"
	}
	l := &logs{writeToken: make(chan struct{}, 1), readers: make(chan *conn, logReaders)}
	if l.w, err = openWriter(path, sync); err != nil {
		return nil, err
	}
	if err = logsSchema.prepare(l.w, now, asIs); err == nil {
		err = l.w.watchLog()
	}
	if err == nil {
		l.wal, err = startCheckpoints(path, l.writeToken)
	}
	for range logReaders {
		if err != nil {
			break
		}
		var c *conn
		if c, err = openReader(path); err == nil {
			l.readers <- c
		}
	}
	if err != nil {
		_ = l.closeAll() // the error of opening it is the one that counts
		return nil, fmt.Errorf("open logs: %w", err)
	}
	l.writeToken <- struct{}{}
	return l, nil
}

const logReaders = 2

// close waits for the running write. The caller ensures that no other write begins.
func (l *logs) close() error {
	<-l.writeToken
	return l.closeAll()
}

func (l *logs) closeAll() error {
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	if l.wal != nil {
		note(l.wal.stop())
	}
	for len(l.readers) > 0 {
		note((<-l.readers).close())
	}
	note(l.w.close())
	return first
}

// writeLogs runs one transaction on the logs.
func (s *Store) writeLogs(ctx context.Context, work func(*conn) error) error {
	if err := store.Outside(ctx); err != nil {
		return err
	}
	l := s.logs
	select {
	case <-l.writeToken:
	case <-ctx.Done():
		return fmt.Errorf("wait to write logs: %w", ctx.Err())
	case <-s.closed:
		return errClosed
	}
	defer func() { l.writeToken <- struct{}{} }()
	if err := l.w.transact(func() error { return work(l.w) }); err != nil {
		return err
	}
	l.wal.wrote(l.w.logLength())
	return nil
}

func (s *Store) AppendLogs(ctx context.Context, all []flow.LogChunk) error {
	if len(all) == 0 {
		return nil
	}
	err := s.writeLogs(ctx, func(c *conn) error {
		for i := range all {
			k := &all[i]
			if err := chunks.bind(c.use(qInsertChunk), k).run(); err != nil {
				return fmt.Errorf("chunk %d of %s: %w", k.Seq, k.Execution, err)
			}
		}
		return nil
	})
	return store.Failed(err, "append logs")
}

func (s *Store) ReadLogs(ctx context.Context, q store.LogQuery) ([]flow.LogChunk, error) {
	if err := store.Outside(ctx); err != nil {
		return nil, err
	}
	var c *conn
	select {
	case c = <-s.logs.readers:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to read logs: %w", ctx.Err())
	case <-s.closed:
		return nil, errClosed
	}
	defer func() { s.logs.readers <- c }()
	defer c.interruptOn(ctx)()
	from, to := int64(0), int64(math.MaxInt64)
	if q.Attempt > 0 {
		from, to = int64(q.Attempt), int64(q.Attempt)
	}
	offset := int64(-1)
	if q.Offset > 0 {
		offset = q.Offset
	}
	if q.Tail > 0 && q.AfterAttempt == 0 && q.AfterSeq == 0 {
		if err := c.tail(&q, from, to); err != nil {
			return nil, fmt.Errorf("look for the tail of the logs of %s: %w", q.Execution, err)
		}
	}
	before, beforeSeq := q.Bound()
	var all []flow.LogChunk
	var size int64
	var bad error
	stmt := c.use(qChunks).id(q.Execution).int(max(from, int64(q.AfterAttempt))).int(to).int(int64(q.AfterAttempt)).int(q.AfterSeq).
		int(int64(before)).int(beforeSeq).textOrNull(q.Stream).textOrNull(q.Stream).int(offset)
	for (len(all) == 0 || size < q.Limit) && stmt.next() {
		all = append(all, flow.LogChunk{})
		k := &all[len(all)-1]
		bad = cmp.Or(bad, chunks.read(stmt, k))
		size += k.Size
	}
	err := cmp.Or(stmt.done(), bad)
	return store.Result(all, err, "read logs of %s", q.Execution)
}

// tail sets the cursor of a query just before the first chunk of the tail.
func (c *conn) tail(q *store.LogQuery, from, to int64) error {
	before, beforeSeq := q.Bound()
	s := c.use(qChunkSizes).id(q.Execution).int(from).int(to).int(int64(before)).int(beforeSeq).textOrNull(q.Stream).textOrNull(q.Stream)
	for size := int64(0); size < q.Tail && s.next(); {
		q.AfterAttempt, q.AfterSeq = int(s.getInt()), s.getInt()-1
		size += s.getInt()
	}
	return s.done()
}

// removeChunks is how many chunks one transaction deletes: 200 of up to 100 KB each are 20 MB.
const removeChunks = 200

func (s *Store) RemoveLogs(ctx context.Context, ids []flow.ID) error {
	for len(ids) > 0 {
		err := s.writeLogs(ctx, func(c *conn) error {
			for left := removeChunks; left > 0 && len(ids) > 0; {
				if err := c.use(qDeleteChunks).id(ids[0]).int(int64(left)).run(); err != nil {
					return fmt.Errorf("remove logs of %s: %w", ids[0], err)
				}
				n := c.changes()
				if n < left {
					ids = ids[1:]
				}
				left -= max(n, 1)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
