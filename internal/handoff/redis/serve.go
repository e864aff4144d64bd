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

// delivery is a letter on its way to a take.
type delivery struct {
	id    string
	body  string
	tries int
}

// counter is where the letters of one call of Serve wait for a take.
type counter struct {
	f    *Office
	ctx  context.Context // of Serve
	line post.Line
	room chan struct{} // has an element for each take
	take func(context.Context, post.Letter) error
	hand sync.WaitGroup

	mu       sync.Mutex
	spent    []delivery // that are to be deleted
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

// free is for how many more letters there are takes, up to how many are read at once.
func (c *counter) free() int { return min(cap(c.room)-len(c.room), mostRead) }

const mostRead = 100

// deliver begins a take. Where there is none free it waits; a letter that waits when ctx ends stays this process's, and goes to another
// when it is stale.
func (c *counter) deliver(d delivery) {
	select {
	case c.room <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	if !c.f.grasp(c.line, d.id) {
		<-c.room
		return // a take is at it
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

// settle does with a letter what its take says. It tries for a few seconds and no longer: what is not settled is delivered again.
func (c *counter) settle(d delivery, taken error) {
	buried, dead := errors.AsType[*post.Buried](taken)
	switch {
	case dead:
		settling, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), settleWithin)
		defer cancel()
		if err := c.f.bury(settling, c.line, d, buried.Reason); err != nil {
			c.f.log.Debug("a letter that cannot be read is delivered again: Redis does not answer", "line", c.line, "err", err)
		}
	case taken == nil && c.line != post.Asks: // an ask is deleted when it is delivered
		c.delete(d)
	}
}

const (
	settleWithin = 5 * time.Second
	// settleAfter is how long letters that are dealt with wait for others, to be deleted by one script: deleting a letter by itself costs
	// Redis as much as receiving it did. No caller waits for it.
	settleAfter = 10 * time.Millisecond
	mostDeleted = 500 // letters in one script
)

// delete lets letters be deleted, together with those that are dealt with a moment later.
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
		if err != nil { // asks are deleted by their age
			c.f.log.Debug("letters were dealt with and are delivered again: Redis does not answer", "line", c.line, "letters", n, "err", err)
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

// readLine delivers new letters until ctx ends.
func (f *Office) readLine(ctx context.Context, c *counter) {
	for failures := 0; ctx.Err() == nil; {
		select { // a letter that is read and finds no take is kept from other servers
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

// fresh waits for new letters, for a second.
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

// makeGroup makes a line, and the group that reads it from its beginning: Redis was new, or has lost it.
func (f *Office) makeGroup(ctx context.Context, line post.Line) error {
	err := f.do(ctx, "XGROUP", "CREATE", f.line(line), group, "0", "MKSTREAM").Error()
	if err != nil && !strings.Contains(err.Error(), "BUSYGROUP") {
		return failed(ctx, "make a line", err)
	}
	return nil
}

// tend does, a few times in the time after which a letter is stale, what a line needs beside its readers: it says of letters that are in
// hand that they are, and takes over those of servers that are gone.
func (f *Office) tend(ctx context.Context, c *counter) {
	every := f.o.Stale / 3
	for ctx.Err() == nil {
		post.Pause(ctx, every-time.Duration(rand.Int64N(int64(every/5))))
		if ctx.Err() != nil {
			return
		}
		if err := f.tendOnce(ctx, c); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "NOGROUP") {
			f.log.Debug("a line at the broker is tended later", "line", c.line, "err", err)
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
			f.log.Error("the broker's namespace has come to another installation", "err", err)
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

// takeOver delivers the letters of which no server has said for long that it has them in hand. A call looks at some of what is pending
// and returns from where the next has to look; only at 0-0 has all of it been looked at. While every take of this server has a letter, as
// in an outage of the store, nothing is taken over: each time counts towards the tries of a letter.
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

// tries is how often a letter was delivered.
func (f *Office) tries(ctx context.Context, line post.Line, id string) (int, error) {
	rows, err := f.do(ctx, "XPENDING", f.line(line), group, id, id, "1").ToArray()
	if err != nil {
		return 0, failed(ctx, "count deliveries", err)
	}
	if len(rows) == 0 {
		return 1, nil // settled meanwhile
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
