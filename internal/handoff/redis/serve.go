package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// delivery is a message that is being delivered.
type delivery struct {
	id    string
	body  string
	tries int
}

// counter holds the messages of one call of Serve that wait for a take.
type counter struct {
	f    *Broker
	ctx  context.Context // of Serve
	line brokerrpc.Line
	room chan struct{} // one element for each running take
	take func(context.Context, brokerrpc.Message) error
	hand sync.WaitGroup

	mu       sync.Mutex
	spent    []delivery // messages to be deleted
	deleting bool
}

func (f *Broker) Serve(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context, brokerrpc.Message) error) {
	c := &counter{f: f, ctx: ctx, line: line, room: make(chan struct{}, most), take: take}
	var loops sync.WaitGroup
	loops.Go(func() { f.readLine(ctx, c) })
	loops.Go(func() { f.tend(ctx, c) })
	loops.Wait()
	c.hand.Wait()
}

// free is how many more takes may start, but no more than are read at once.
func (c *counter) free() int { return min(cap(c.room)-len(c.room), mostRead) }

const mostRead = 100

// deliver starts a take. If too many are running it waits. A message that still waits when ctx ends stays assigned to this
// process, and goes to another one when it is stale.
func (c *counter) deliver(d delivery) {
	select {
	case c.room <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	if !c.f.grasp(c.line, d.id) {
		<-c.room
		return // a take is handling it
	}
	c.hand.Go(func() {
		defer func() { <-c.room }()
		defer c.f.release(c.line, d.id)
		c.settle(d, c.take(c.ctx, brokerrpc.Message{ID: d.id, Body: []byte(d.body), Tries: d.tries, Age: c.f.age(d.id)}))
	})
}

func (f *Broker) grasp(line brokerrpc.Line, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hand[line][id] {
		return false
	}
	f.hand[line][id] = true
	return true
}

func (f *Broker) release(line brokerrpc.Line, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.hand[line], id)
}

func (f *Broker) inHand(line brokerrpc.Line) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.hand[line]))
}

// settle deletes a message, dead-letters it or leaves it, as its take has decided. It tries only for a few seconds; a message that it
// leaves is delivered again.
func (c *counter) settle(d delivery, taken error) {
	unreadable, dead := errors.AsType[*brokerrpc.Unreadable](taken)
	switch {
	case dead:
		settling, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), settleWithin)
		defer cancel()
		if err := c.f.deadLetter(settling, c.line, d, unreadable.Reason); err != nil {
			c.f.log.Debug("an unreadable message will be delivered again: Redis does not answer", "line", c.line, "err", err)
		}
	case taken == nil && c.line != brokerrpc.Asks: // an ask was deleted on delivery
		c.delete(d)
	}
}

const (
	settleWithin = 5 * time.Second
	// settleAfter is how long a handled message waits so that several can be deleted by one script, since deleting one alone
	// costs Redis as much as receiving it did. No caller waits for this.
	settleAfter = 10 * time.Millisecond
	mostDeleted = 500 // messages deleted by one script
)

// delete arranges that messages are deleted, together with those that are handled a moment later.
func (c *counter) delete(all ...delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent = append(c.spent, all...)
	if !c.deleting {
		c.deleting = true
		c.hand.Go(c.deleteSpent)
	}
}

func (c *counter) deleteSpent() {
	for {
		if !c.muchSpent() {
			brokerrpc.Pause(c.ctx, settleAfter)
		}
		c.mu.Lock()
		n := min(len(c.spent), mostDeleted)
		spent := c.spent[:n:n]
		c.spent = c.spent[n:]
		if n == 0 {
			c.spent, c.deleting = nil, false
		}
		c.mu.Unlock()
		if n == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), settleWithin)
		err := c.f.remove(ctx, c.line, spent...)
		cancel()
		if err != nil { // asks that stay are deleted at a certain age
			c.f.log.Debug("handled messages will be delivered again: Redis does not answer", "line", c.line, "messages", n, "err", err)
		}
	}
}

func (c *counter) muchSpent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spent) >= mostDeleted
}

// remove deletes messages from a line.
func (f *Broker) remove(ctx context.Context, line brokerrpc.Line, all ...delivery) error {
	args := []string{string(line), group}
	for _, d := range all {
		args = append(args, d.id, strconv.Itoa(len(d.body)))
	}
	return settleScript.Exec(ctx, f.client, []string{f.line(line), f.key("bytes")}, args).Error()
}

func (f *Broker) deadLetter(ctx context.Context, line brokerrpc.Line, d delivery, reason string) error {
	f.log.Warn("a message that cannot be read is put among the dead letters: see pawl broker dead", "line", line, "id", d.id, "why", reason)
	return deadLetterScript.Exec(ctx, f.client, []string{f.line(line), f.key("bytes"), f.key("dead")},
		[]string{string(line), group, d.id, d.body, reason, strconv.Itoa(d.tries), strconv.Itoa(mostDead)}).Error()
}

// readLine reads new messages and delivers them, until ctx ends.
func (f *Broker) readLine(ctx context.Context, c *counter) {
	for failures := 0; ctx.Err() == nil; {
		select { // reads only if a take is free: a message that waits here is withheld from other servers
		case c.room <- struct{}{}:
			<-c.room
		case <-ctx.Done():
			return
		}
		fresh, err := f.fresh(ctx, c.line, max(1, c.free()))
		if wrongType(err) {
			if err = f.repair(ctx); err == nil {
				err = f.makeGroup(ctx, c.line)
			}
		} else if lostLine(err) {
			err = f.makeGroup(ctx, c.line)
		}
		if err != nil {
			if failures++; failures == 3 && ctx.Err() == nil {
				f.log.Warn("a line of the broker cannot be read; trying again until it can", "line", c.line, "err", err)
			}
			brokerrpc.Pause(ctx, time.Duration(min(failures, 10))*100*time.Millisecond)
			continue
		}
		failures = 0
		for _, d := range fresh {
			c.deliver(d)
		}
		if c.line == brokerrpc.Asks && len(fresh) > 0 {
			c.delete(fresh...)
		}
	}
}

// lostLine reports whether a line or its group does not exist, or was deleted while it was read.
func lostLine(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "NOGROUP") || strings.Contains(err.Error(), "UNBLOCKED"))
}

// fresh waits up to a second for new messages.
func (f *Broker) fresh(ctx context.Context, line brokerrpc.Line, most int) ([]delivery, error) {
	asking, cancel := context.WithTimeout(ctx, blockFor+5*time.Second)
	defer cancel()
	words := []string{"GROUP", group, f.name, "COUNT", strconv.Itoa(most), "BLOCK", strconv.FormatInt(blockFor.Milliseconds(), 10)}
	if line == brokerrpc.Asks {
		words = append(words, "NOACK")
	}
	read := f.client.B().Arbitrary("XREADGROUP").Args(words...).Args("STREAMS").Keys(f.line(line)).Args(">").Blocking()
	streams, err := f.client.Do(asking, read).AsXRead()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failed(ctx, "read a line", err)
	}
	var all []delivery
	for _, m := range streams[f.line(line)] {
		all = append(all, delivery{id: m.ID, body: m.FieldValues["l"], tries: 1})
	}
	return all, nil
}

// makeGroup makes a line, and the group that reads it from its beginning. Redis was new or has lost them.
func (f *Broker) makeGroup(ctx context.Context, line brokerrpc.Line) error {
	err := f.do(ctx, "XGROUP", "CREATE", f.line(line), group, "0", "MKSTREAM").Error()
	if err != nil && !strings.Contains(err.Error(), "BUSYGROUP") {
		return failed(ctx, "make a line", err)
	}
	return nil
}

// tend maintains a line, several times in the time after which a message is stale: it renews this server's claim on the messages that it
// handles, and takes over those of dead servers.
func (f *Broker) tend(ctx context.Context, c *counter) {
	every := f.o.Stale / 3
	for ctx.Err() == nil {
		brokerrpc.Pause(ctx, every-time.Duration(rand.Int64N(int64(every/5))))
		if ctx.Err() != nil {
			return
		}
		if err := f.tendOnce(ctx, c); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "NOGROUP") {
			f.log.Debug("stale messages of a line are taken over later", "line", c.line, "err", err)
		}
	}
}

func (f *Broker) tendOnce(ctx context.Context, c *counter) error {
	line := c.line
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := f.readClock(asking); err != nil {
		return err
	}
	if line == brokerrpc.Asks {
		if err := f.claimNamespace(asking); err != nil && !errors.Is(err, brokerrpc.ErrUnavailable) {
			f.log.Error("the broker's namespace now belongs to another installation", "err", err)
		}
	}
	if err := forgetScript.Exec(asking, f.client, []string{f.line(line)}, []string{group, "3600000"}).Error(); err != nil {
		return failed(ctx, "forget consumers", err)
	}
	if line == brokerrpc.Asks {
		return trimScript.Exec(asking, f.client, []string{f.line(line), f.key("bytes")}, []string{string(line), strconv.Itoa(oldAsk)}).Error()
	}
	if ids := f.inHand(line); len(ids) > 0 {
		words := append([]string{group, f.name, "0"}, ids...)
		if err := f.do(asking, append([]string{"XCLAIM", f.line(line)}, append(words, "JUSTID")...)...).Error(); err != nil {
			return failed(ctx, "keep messages", err)
		}
	}
	return f.takeOver(asking, c)
}

// takeOver delivers messages whose servers have not renewed their claim for too long. A call reads a part of the pending messages, and the
// next one continues from there; at 0-0 all have been read. While all takes of this server are busy, for example in an outage of the store,
// it takes nothing over, because every delivery counts towards the tries of a message.
func (f *Broker) takeOver(ctx context.Context, c *counter) error {
	line := c.line
	for cursor := "0-0"; c.free() > 0; {
		answer, err := f.do(ctx, "XAUTOCLAIM", f.line(line), group, f.name, strconv.FormatInt(f.o.Stale.Milliseconds(), 10), cursor, "COUNT", strconv.Itoa(max(1, c.free()))).ToArray()
		if err != nil {
			return failed(ctx, "take messages over", err)
		}
		if len(answer) < 2 {
			return failed(ctx, "take messages over", fmt.Errorf("it answers with %d parts", len(answer)))
		}
		if cursor, err = answer[0].ToString(); err != nil {
			return failed(ctx, "take messages over", err)
		}
		entries, err := answer[1].AsXRange()
		if err != nil {
			return failed(ctx, "take messages over", err)
		}
		for _, m := range entries {
			tries, err := f.tries(ctx, line, m.ID)
			if err != nil {
				return err
			}
			d := delivery{id: m.ID, body: m.FieldValues["l"], tries: tries}
			if tries > brokerrpc.MostTries {
				if err := f.deadLetter(ctx, line, d, fmt.Sprintf("delivered %d times and never settled", tries-1)); err != nil {
					return failed(ctx, "dead-letter a message", err)
				}
				continue
			}
			c.deliver(d)
		}
		if cursor == "0-0" {
			return nil
		}
	}
	return nil
}

// tries is how often a message has been delivered.
func (f *Broker) tries(ctx context.Context, line brokerrpc.Line, id string) (int, error) {
	rows, err := f.do(ctx, "XPENDING", f.line(line), group, id, id, "1").ToArray()
	if err != nil {
		return 0, failed(ctx, "count deliveries", err)
	}
	if len(rows) == 0 {
		return 1, nil // it was settled meanwhile
	}
	row, err := rows[0].ToArray()
	if err != nil || len(row) < 4 {
		return 0, failed(ctx, "count deliveries", fmt.Errorf("it answers with %d parts: %w", len(row), err))
	}
	n, err := row[3].AsInt64()
	return int(n), err
}

func cutID(id string) (ms string, n uint64, ok bool) {
	ms, text, ok := strings.Cut(id, "-")
	n, err := strconv.ParseUint(text, 10, 64)
	return ms, n, ok && err == nil
}
