package engine

import (
	"slices"
	"time"
)

// batcher decides which requests go into one transaction, and when it begins. It holds the requests that wait and knows which
// transactions are under way; it runs none. The engine's mutex guards it.
//
// A lone request goes at once, requests that come during a transaction go together in the next. There are two exceptions, and one
// rule of fairness:
//
//   - With several committers a transaction may begin beside another one. A few requests are cheaper in the next transaction of the
//     committer that is busy: besideFrom and besideAfter say when they do not wait for it.
//   - Callers that one transaction has answered usually return together. Without a pause the first of them would be committed alone,
//     and the others would wait for that commit: see pause.
//   - Follow-ups, which are the engine's own requests, alternate with those of callers: see followUps.
type batcher struct {
	pending      []op
	pendingBytes int
	arrivals     []arrival // one for each call that handed some of pending in
	followUps    followUps
	underWay     []*batch // in the order in which they began
	pause        pause
	// saturated is set while workers take a large batch of work at a time: then no transaction waits for more requests, because
	// the next ones are large without that.
	saturated bool
}

const (
	batchLimit   = 1000    // requests in one transaction: a few tens of milliseconds at the most
	batchBytes   = 2 << 20 // of these, after which no further request joins: 6.5 MB took 35 ms alone, and 1 s beside four clients like it
	pendingLimit = 200_000 // requests waiting for a transaction; beyond it callers get ErrOverloaded
	pendingBytes = 256 << 20

	// besideFrom is how many requests are worth a transaction beside another one. Fewer wait for the end of that one, at the most
	// until it has been under way for besideAfter.
	besideFrom  = 32
	besideAfter = 20 * time.Millisecond

	// A transaction that answered pauseFrom callers or more is followed by a pause of 1/pausePart of the time that it took, and of
	// pauseMost at the most. In an idle process a timer is a millisecond late.
	pauseFrom = 8
	pausePart = 4
	pauseMost = 2 * time.Millisecond

	// saturatedFrom is how many executions one worker takes at a time when the batcher is saturated.
	saturatedFrom = batchLimit / 4
)

// arrival is one call that handed in requests: at is when it came, requests how many of its requests are in no batch yet.
type arrival struct {
	requests int
	at       time.Time
}

// batch is what goes into one transaction.
type batch struct {
	ops      []op
	callers  int        // whose last request is in the batch: its commit answers them
	claimers []*claimer // in whose queues there may be work
	began    time.Time
	of       source
}

// pause is the time in which the next transaction waits for callers that the last one has answered, unless enough requests wait.
type pause struct {
	until  time.Time
	enough int
}

// add takes in the requests of one call.
func (b *batcher) add(ops []op, now time.Time) error {
	size := 0
	for _, o := range ops {
		size += o.size()
	}
	if len(b.pending)+len(ops) > pendingLimit || len(b.pending) > 0 && b.pendingBytes+size > pendingBytes {
		return ErrOverloaded
	}
	b.pending, b.pendingBytes = append(b.pending, ops...), b.pendingBytes+size
	b.arrivals = append(b.arrivals, arrival{len(ops), now})
	return nil
}

// startable is how many requests could go into a transaction now.
func (b *batcher) startable() int { return len(b.pending) + b.followUps.startable() }

// wait is how long the next transaction waits for more requests; 0 or less: it may begin now.
func (b *batcher) wait(now time.Time) time.Duration {
	if b.saturated {
		return 0
	}
	if len(b.underWay) > 0 && b.startable() < besideFrom {
		if left := b.underWay[len(b.underWay)-1].began.Add(besideAfter).Sub(now); left > 0 {
			return left
		}
	}
	if n := len(b.pending); n == 0 || n >= b.pause.enough || len(b.underWay) > 0 {
		return 0
	}
	return b.pause.until.Sub(now)
}

// next takes out the requests of the next transaction: callers' or follow-ups, never both. A process that is stopping leaves its
// follow-ups to the next one.
func (b *batcher) next(stopping bool) *batch {
	x := &batch{}
	if !stopping {
		x.ops, x.of = b.followUps.gather(len(b.pending) > 0)
	}
	if len(x.ops) == 0 {
		n, size := b.fitting()
		x.ops, x.callers = b.pending[:n:n], b.answered(n)
		b.pending, b.pendingBytes = b.pending[n:], b.pendingBytes-size
	}
	if len(b.pending) == 0 {
		b.pending = nil // frees their memory
	}
	return x
}

// fitting is how many of the pending requests go into one transaction, and how many bytes they hold.
func (b *batcher) fitting() (n, size int) {
	for n < min(len(b.pending), batchLimit) && size < batchBytes {
		size += b.pending[n].size()
		n++
	}
	return n, size
}

// answered takes the first n pending requests off the arrivals, and returns of how many calls the last request is among them.
func (b *batcher) answered(n int) (callers int) {
	for callers < len(b.arrivals) && b.arrivals[callers].requests <= n {
		n -= b.arrivals[callers].requests
		callers++
	}
	if b.arrivals = b.arrivals[callers:]; len(b.arrivals) == 0 {
		b.arrivals = nil // frees their memory
	} else {
		b.arrivals[0].requests -= n
	}
	return callers
}

// begin counts a batch as under way until done.
func (b *batcher) begin(x *batch, now time.Time) {
	x.began = now
	b.underWay = append(b.underWay, x)
}

// done ends a batch, whether it was committed or not. It reports whether a follow-up may begin now that had to wait for it.
func (b *batcher) done(x *batch, now time.Time) (startable bool) {
	i := slices.Index(b.underWay, x)
	b.underWay = slices.Delete(b.underWay, i, i+1)
	startable = b.followUps.done(x.of)
	if x.callers >= pauseFrom {
		if until := now.Add(min(now.Sub(x.began)/pausePart, pauseMost)); until.After(b.pause.until) {
			b.pause = pause{until, len(x.ops) / 2}
		}
	}
	return startable
}

// ages returns how long the oldest transaction has been under way, and how long the oldest pending request has waited for
// one. An age is 0 where there is no transaction or no request.
func (b *batcher) ages(now time.Time) (commit, pending time.Duration) {
	if len(b.underWay) > 0 {
		commit = now.Sub(b.underWay[0].began)
	}
	if len(b.pending) > 0 {
		pending = now.Sub(b.arrivals[0].at)
	}
	return commit, pending
}

// clear drops every request and returns those of callers.
func (b *batcher) clear() (pending []op) {
	pending = b.pending
	b.pending, b.pendingBytes, b.arrivals, b.followUps = nil, 0, nil, followUps{}
	return pending
}
