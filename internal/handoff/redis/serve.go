package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// delivery is a letter that is being delivered.
type delivery struct {
	id    string
	body  string
	tries int
}

// counter holds the letters of one call of Serve, which wait for a take.
type counter struct {
	f    *Office
	ctx  context.Context // of Serve
	line post.Line
	room chan struct{} // one element for each running take
	take func(context.Context, post.Letter) error
	hand sync.WaitGroup

	mu       sync.Mutex
	spent    []delivery // letters to be deleted
	deleting bool
}

// Serve implements post.Office.
func (f *Office) Serve(ctx context.Context, line post.Line, most int, take func(context.Context, post.Letter) error) {
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

// deliver starts a take. If too many are running it waits. A letter that still waits when ctx ends stays assigned to this
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
		c.settle(d, c.take(c.ctx, post.Letter{ID: d.id, Body: []byte(d.body), Tries: d.tries, Age: c.f.age(d.id)}))
	})
}

func (f *Office) grasp(line post.Line, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hand[line][id] {
		return false
	}
	f.hand[line][id] = true
	return true
}

func (f *Office) release(line post.Line, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.hand[line], id)
}

func (f *Office) inHand(line post.Line) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.hand[line] {
		ids = append(ids, id)
	}
	return ids
}

// settle deletes a letter, buries it or leaves it, as its take has decided. It tries for a few seconds only; a letter that it
// leaves is delivered again.
func (c *counter) settle(d delivery, taken error) {
	buried, dead := errors.AsType[*post.Buried](taken)
	switch {
	case dead:
		settling, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), settleWithin)
		defer cancel()
		if err := c.f.bury(settling, c.line, d, buried.Reason); err != nil {
			c.f.log.Debug("an unreadable letter will be delivered again: Redis does not answer", "line", c.line, "err", err)
		}
	case taken == nil && c.line != post.Asks: // an ask was deleted on delivery
		c.delete(d)
	}
}

const (
	settleWithin = 5 * time.Second
	// settleAfter is how long a handled letter waits so that several can be deleted by one script, since deleting one alone
	// costs Redis as much as receiving it did. No caller waits for this.
	settleAfter = 10 * time.Millisecond
	mostDeleted = 500 // letters deleted by one script
)

// delete arranges that letters are deleted, together with those that are handled a moment later.
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
			post.Pause(c.ctx, settleAfter)
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
			c.f.log.Debug("handled letters will be delivered again: Redis does not answer", "line", c.line, "letters", n, "err", err)
		}
	}
}

func (c *counter) muchSpent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spent) >= mostDeleted
}

// remove deletes letters from a line.
func (f *Office) remove(ctx context.Context, line post.Line, all ...delivery) error {
	args := []string{string(line), group}
	for _, d := range all {
		args = append(args, d.id, strconv.Itoa(len(d.body)))
	}
	return settleScript.Exec(ctx, f.client, []string{f.line(line), f.key("bytes")}, args).Error()
}

func (f *Office) bury(ctx context.Context, line post.Line, d delivery, reason string) error {
	f.log.Warn("a letter that cannot be read is put among the dead letters: see pawl broker dead", "line", line, "id", d.id, "why", reason)
	return buryScript.Exec(ctx, f.client, []string{f.line(line), f.key("bytes"), f.key("dead")},
		[]string{string(line), group, d.id, d.body, reason, strconv.Itoa(d.tries), strconv.Itoa(mostDead)}).Error()
}

// readLine reads new letters and delivers them, until ctx ends.
func (f *Office) readLine(ctx context.Context, c *counter) {
	for failures := 0; ctx.Err() == nil; {
		select { // reads only when a take is free: a letter that waits here is kept from other servers
		case c.room <- struct{}{}:
			<-c.room
		case <-ctx.Done():
			return
		}
		fresh, err := f.fresh(ctx, c.line, max(1, c.free()))
		if err != nil && strings.Contains(err.Error(), "NOGROUP") {
			if err = f.makeGroup(ctx, c.line); err == nil {
				continue
			}
		}
		if err != nil {
			if failures++; failures == 3 && ctx.Err() == nil {
				f.log.Warn("the broker does not answer; trying again until it does", "line", c.line, "err", err)
			}
			post.Pause(ctx, time.Duration(min(failures, 10))*100*time.Millisecond)
			continue
		}
		failures = 0
		for _, d := range fresh {
			c.deliver(d)
		}
		if c.line == post.Asks && len(fresh) > 0 {
			c.delete(fresh...)
		}
	}
}

// fresh waits up to a second for new letters.
func (f *Office) fresh(ctx context.Context, line post.Line, most int) ([]delivery, error) {
	asking, cancel := context.WithTimeout(ctx, blockFor+5*time.Second)
	defer cancel()
	words := []string{"GROUP", group, f.name, "COUNT", strconv.Itoa(most), "BLOCK", strconv.FormatInt(blockFor.Milliseconds(), 10)}
	if line == post.Asks {
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
func (f *Office) makeGroup(ctx context.Context, line post.Line) error {
	err := f.do(ctx, "XGROUP", "CREATE", f.line(line), group, "0", "MKSTREAM").Error()
	if err != nil && !strings.Contains(err.Error(), "BUSYGROUP") {
		return failed(ctx, "make a line", err)
	}
	return nil
}

// tend looks after a line, a few times in the time after which a letter is stale: it renews this server's claim on the letters
// that it handles, and takes over those of dead servers.
func (f *Office) tend(ctx context.Context, c *counter) {
	every := f.o.Stale / 3
	for ctx.Err() == nil {
		post.Pause(ctx, every-time.Duration(rand.Int64N(int64(every/5))))
		if ctx.Err() != nil {
			return
		}
		if err := f.tendOnce(ctx, c); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "NOGROUP") {
			f.log.Debug("stale letters of a line are taken over later", "line", c.line, "err", err)
		}
	}
}

func (f *Office) tendOnce(ctx context.Context, c *counter) error {
	line := c.line
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := f.readClock(asking); err != nil {
		return err
	}
	if err := forgetScript.Exec(asking, f.client, []string{f.line(line)}, []string{group, "3600000"}).Error(); err != nil {
		return failed(ctx, "forget consumers", err)
	}
	if line == post.Asks {
		if err := f.claimNamespace(asking); err != nil && !errors.Is(err, post.ErrUnavailable) {
			f.log.Error("the broker's namespace now belongs to another installation", "err", err)
		}
		return trimScript.Exec(asking, f.client, []string{f.line(line), f.key("bytes")}, []string{string(line), strconv.Itoa(oldAsk)}).Error()
	}
	if ids := f.inHand(line); len(ids) > 0 {
		words := append([]string{group, f.name, "0"}, ids...)
		if err := f.do(asking, append([]string{"XCLAIM", f.line(line)}, append(words, "JUSTID")...)...).Error(); err != nil {
			return failed(ctx, "keep letters", err)
		}
	}
	return f.takeOver(asking, c)
}

// takeOver delivers letters whose servers have not renewed their claim for too long. A call looks at a part of the pending
// letters, and the next one goes on from there; at 0-0 all have been looked at. While all takes of this server are busy, as in
// an outage of the store, it takes nothing over, because every delivery counts towards the tries of a letter.
func (f *Office) takeOver(ctx context.Context, c *counter) error {
	line := c.line
	for cursor := "0-0"; c.free() > 0; {
		answer, err := f.do(ctx, "XAUTOCLAIM", f.line(line), group, f.name, strconv.FormatInt(f.o.Stale.Milliseconds(), 10), cursor, "COUNT", strconv.Itoa(max(1, c.free()))).ToArray()
		if err != nil {
			return failed(ctx, "take letters over", err)
		}
		if len(answer) < 2 {
			return failed(ctx, "take letters over", fmt.Errorf("it answers with %d parts", len(answer)))
		}
		if cursor, err = answer[0].ToString(); err != nil {
			return failed(ctx, "take letters over", err)
		}
		entries, err := answer[1].AsXRange()
		if err != nil {
			return failed(ctx, "take letters over", err)
		}
		for _, m := range entries {
			tries, err := f.tries(ctx, line, m.ID)
			if err != nil {
				return err
			}
			d := delivery{id: m.ID, body: m.FieldValues["l"], tries: tries}
			if tries > post.MostTries {
				if err := f.bury(ctx, line, d, fmt.Sprintf("delivered %d times and never settled", tries-1)); err != nil {
					return failed(ctx, "bury a letter", err)
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

// tries is how often a letter has been delivered.
func (f *Office) tries(ctx context.Context, line post.Line, id string) (int, error) {
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
