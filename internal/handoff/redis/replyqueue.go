package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// mostMessages is how many messages one read of a reply queue returns: each may have half a megabyte, and messages that do not
// arrive in time are read again.
const mostMessages = 8

// replyQueue is a reply queue: a stream that only its owner reads, without a group.
type replyQueue struct {
	f       *Broker
	name    string
	key     string
	last    string // id of the last message read
	waiting [][]byte
	touched time.Time
	read    int // bytes that were read and are still in Redis
}

// ReplyQueue implements brokerrpc.Transport. The name is random. In a stream with the name of an old reply queue, messages could get lower
// ids than its reader has seen, and XREAD would skip them.
func (f *Broker) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	raw := make([]byte, 16)
	rand.Read(raw) // never fails on the systems that Go supports
	b := &replyQueue{f: f, name: hex.EncodeToString(raw)}
	b.key = f.key("to:" + b.name)
	last, err := replyQueueScript.Exec(ctx, f.client, []string{b.key}, []string{strconv.FormatInt(replyQueueLife.Milliseconds(),
		10)}).ToString()
	if err != nil {
		return nil, failed(ctx, "make a reply queue", err)
	}
	b.last, b.touched = last, time.Now()
	return b, nil
}

func (b *replyQueue) Name() string { return b.name }

func (b *replyQueue) Next(ctx context.Context) ([]byte, error) {
	for len(b.waiting) == 0 {
		if err := b.touch(ctx); err != nil {
			return nil, err
		}
		if err := b.fetch(ctx); err != nil {
			return nil, err
		}
	}
	message := b.waiting[0]
	b.waiting = b.waiting[1:]
	return message, nil
}

// touch prolongs the life of the reply queue, and finds out whether it still exists.
func (b *replyQueue) touch(ctx context.Context) error {
	if time.Since(b.touched) < replyQueueTouch {
		return nil
	}
	b.trim(ctx)
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	there, err := b.f.do(asking, "PEXPIRE", b.key, strconv.FormatInt(replyQueueLife.Milliseconds(), 10)).AsInt64()
	if err != nil {
		return failed(ctx, "look at the reply queue", err)
	}
	if there == 0 {
		return brokerrpc.ErrNoReplyQueue
	}
	b.touched = time.Now()
	return nil
}

func (b *replyQueue) fetch(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, replyQueueBlock+5*time.Second)
	defer cancel()
	read := b.f.client.B().Xread().Count(mostMessages).Block(replyQueueBlock.Milliseconds()).Streams().Key(b.key).Id(b.last).Build()
	streams, err := b.f.client.Do(asking, read).AsXRead()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	if wrongType(err) {
		return brokerrpc.ErrNoReplyQueue
	}
	if err != nil {
		b.touched = time.Time{} // a restarted Redis may have lost the reply queue, and its reader would wait for ever
		return failed(ctx, "read the reply queue", err)
	}
	for _, m := range streams[b.key] {
		b.last = m.ID
		if text, ok := m.FieldValues["m"]; ok {
			b.waiting = append(b.waiting, []byte(text))
			b.read += len(text) + 64
		}
	}
	if b.read > mostKept {
		b.trim(ctx)
	}
	return nil
}

// mostKept is how many bytes of a reply queue stay in Redis after they were read. Deleting after each read would make every message
// wait for one more answer of Redis.
const mostKept = 256 << 10

// trim deletes messages that were read. If it fails they occupy memory until the next call.
func (b *replyQueue) trim(ctx context.Context) {
	if b.read == 0 {
		return
	}
	if b.f.do(ctx, "XTRIM", b.key, "MINID", after(b.last)).Error() == nil {
		b.read = 0
	}
}

// after is the lowest id after one.
func after(id string) string {
	ms, n, ok := cutID(id)
	if !ok {
		return id
	}
	return fmt.Sprintf("%s-%d", ms, n+1)
}

func (b *replyQueue) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.f.do(ctx, "DEL", b.key).Error() // if this fails, Redis deletes it when its life is over
}
