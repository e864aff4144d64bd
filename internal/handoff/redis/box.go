package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// mostMessages is how many messages one read of a mailbox brings: each may have half a megabyte, and what does not arrive in time is
// read again.
const mostMessages = 8

// box is a mailbox: a stream that its owner alone reads, without a group.
type box struct {
	f       *Office
	name    string
	key     string
	last    string // id of the last message that was read
	waiting [][]byte
	touched time.Time
	read    int // bytes that were read and are in Redis still
}

// Box implements post.Office. The name is random: the stream of a mailbox of an old name might give its messages lower ids than its
// reader has seen, and XREAD would pass over them.
func (f *Office) Box(ctx context.Context) (post.Box, error) {
	raw := make([]byte, 16)
	rand.Read(raw) // never fails on the systems that Go supports
	b := &box{f: f, name: hex.EncodeToString(raw)}
	b.key = f.key("to:" + b.name)
	last, err := boxScript.Exec(ctx, f.client, []string{b.key}, []string{strconv.FormatInt(boxLife.Milliseconds(), 10)}).ToString()
	if err != nil {
		return nil, failed(ctx, "make a mailbox", err)
	}
	b.last, b.touched = last, time.Now()
	return b, nil
}

func (b *box) Name() string { return b.name }

// Next implements post.Box.
func (b *box) Next(ctx context.Context) ([]byte, error) {
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

// touch keeps the mailbox, and finds out whether it is there still.
func (b *box) touch(ctx context.Context) error {
	if time.Since(b.touched) < boxTouch {
		return nil
	}
	b.trim(ctx)
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	there, err := b.f.do(asking, "PEXPIRE", b.key, strconv.FormatInt(boxLife.Milliseconds(), 10)).AsInt64()
	if err != nil {
		return failed(ctx, "look at the mailbox", err)
	}
	if there == 0 {
		return post.ErrNoBox
	}
	b.touched = time.Now()
	return nil
}

func (b *box) fetch(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, boxBlock+5*time.Second)
	defer cancel()
	streams, err := b.f.client.Do(asking, b.f.client.B().Xread().Count(mostMessages).Block(boxBlock.Milliseconds()).Streams().Key(b.key).Id(b.last).Build()).AsXRead()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	if err != nil {
		b.touched = time.Time{} // a Redis that has started again may have lost it, and would let its reader wait
		return failed(ctx, "read the mailbox", err)
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

// mostKept is how many bytes of a mailbox are kept in Redis after they were read. Deleting after each read would make each message wait
// for one more answer of Redis.
const mostKept = 256 << 10

// trim deletes what was read. Its failure costs memory until the next.
func (b *box) trim(ctx context.Context) {
	if b.read == 0 {
		return
	}
	if b.f.do(ctx, "XTRIM", b.key, "MINID", after(b.last)).Error() == nil {
		b.read = 0
	}
}

// after is the first id behind one.
func after(id string) string {
	ms, n, ok := cutID(id)
	if !ok {
		return id
	}
	return fmt.Sprintf("%s-%d", ms, n+1)
}

// Close implements post.Box.
func (b *box) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.f.do(ctx, "DEL", b.key).Error() // or Redis deletes it when its time is over
}
