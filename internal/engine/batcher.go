package engine

import (
	"slices"
	"time"
)

// batcher decides which requests go into one transaction, and when it begins. It holds the waiting requests and knows which transactions
// are under way; it runs none. The engine's mutex guards it, except contention, which has its own.
//
// A lone request goes at once, requests that come during a transaction go together in the next. There are two exceptions:
//
//   - With several committers a transaction may begin beside another one. A few requests are cheaper in the next transaction of the
//     committer that is busy: besideFrom and besideAfter say when they do not wait for it.
//   - Callers that one transaction has answered usually return together. Without a wait the first of them would be committed alone,
//     and the others would wait for that commit: see linger.
//
// Four rules give the order:
//
//   - Renewals and orders of sessions go first: behind 200,000 submissions the renewal of a lease would come too late, and
//     workers would kill what they run.
//   - Follow-ups, which are the engine's own requests, alternate with those of callers: see followUps.
//   - Calls that need contended keys have batches of their own, one at a time: see contention.
//   - Small calls go before large ones: see backlog.
type batcher struct {
	sessionCalls  backlog // renewals, and looks for orders
	plain         backlog
	contended     backlog // calls with a request that needs a contended key
	busyContended bool    // a contended batch is under way
	lastContended bool    // the last batch of callers was contended
	followUps     followUps
	underWay      []*batch // in the order in which they began
	linger        linger
	ended         time.Time // when the latest batch ended, committed or not
	wokenWaiters  int       // callers of Wait whose execution has ended in a commit since the last batch ended
	contention    contention
	keysKnown     int // how many keys contention had found when plain calls were last moved to contended
}

const (
	// pendingLimit and pendingBytes bound the requests that wait for a transaction; beyond them callers get ErrOverloaded.
	// Chosen, not measured.
	pendingLimit = 200_000
	pendingBytes = 256 << 20

	// besideFrom is how many requests are worth a transaction beside another one. Fewer requests wait until that transaction ends, or has been
	// under way for besideAfter. Without the wait, 100 workflows of three steps on PostgreSQL took six commits of ten with one request each
	// (decision 2). The need to wait is measured; the two numbers are chosen.
	besideFrom  = 32
	besideAfter = 20 * time.Millisecond

	// After a transaction that answered at least lingerFrom callers, the next one waits for 1/lingerPart of its duration, for lingerMost at
	// the most, and only until half as many requests are waiting. The need to wait is measured (decision 2); the numbers are chosen. An idle
	// process's timer fires up to a millisecond late, so a much smaller lingerMost would not be kept. Callers of Wait that the transaction has
	// woken count as answered. Without that, with 32 clients that submitted one execution after the other on PostgreSQL, every third
	// transaction had the request of one client alone.
	lingerFrom = 8
	lingerPart = 4
	lingerMost = 2 * time.Millisecond
)

// batch is what goes into one transaction.
type batch struct {
	ops         []op
	sessionOps  int        // how many of ops, at their beginning, are of sessions
	callers     int        // calls whose last request is in the batch: its commit answers them
	claimers    []*claimer // whose queues may hold work
	began       time.Time
	batchSource source
}

// linger is how long the next transaction waits for callers that the last one answered.
type linger struct {
	until  time.Time
	enough int // the transaction begins when this many requests wait
}

// add adds the requests of one call.
func (b *batcher) add(ops []op, now time.Time) error {
	size := 0
	for _, o := range ops {
		size += o.size()
	}
	if allFromSessions(ops) {
		b.sessionCalls.add(call{ops: ops, bytes: size, at: now})
		return nil
	}
	n := b.plain.requests + b.contended.requests
	if n+len(ops) > pendingLimit || n > 0 && b.plain.bytes+b.contended.bytes+size > pendingBytes {
		return ErrOverloaded
	}
	to := &b.plain
	if b.contention.needed(ops, now) {
		to = &b.contended
	}
	to.add(call{ops: ops, bytes: size, at: now})
	return nil
}

// pending is how many requests wait, without follow-ups.
func (b *batcher) pending() int {
	return b.sessionCalls.requests + b.plain.requests + b.contended.requests
}

// startable is how many requests could go into a transaction now.
func (b *batcher) startable() int { return b.startableRequests() + b.followUps.startable() }

func (b *batcher) startableRequests() int {
	if b.busyContended {
		return b.sessionCalls.requests + b.plain.requests
	}
	return b.pending()
}

// wait is how long the next transaction waits for more requests; 0 or less: it may begin now.
func (b *batcher) wait(now time.Time) time.Duration {
	if len(b.underWay) > 0 && b.startable() < besideFrom {
		if left := b.underWay[len(b.underWay)-1].began.Add(besideAfter).Sub(now); left > 0 {
			return left
		}
	}
	if n := b.startableRequests(); n == 0 || n >= b.linger.enough || len(b.underWay) > 0 {
		return 0
	}
	return b.linger.until.Sub(now)
}

// next takes out the requests of the next transaction: callers' or follow-ups, never both. A stopping process leaves its follow-ups to the
// process after it.
func (b *batcher) next(stopping bool, now time.Time) *batch {
	var fresh bool
	if b.keysKnown, fresh = b.contention.newSince(b.keysKnown); fresh {
		for _, c := range b.plain.takeOut(func(c call) bool { return b.contention.needed(c.ops, now) }) {
			b.contended.add(c)
		}
	}
	if !stopping {
		if ops, batchSource := b.followUps.next(b.startableRequests() > 0); len(ops) > 0 {
			return &batch{ops: ops, batchSource: batchSource}
		}
	}
	if b.lastContended = b.contendedTurn(stopping); b.lastContended {
		b.busyContended = true
		x := &batch{batchSource: sourceContended}
		b.contended.fill(x)
		return x
	}
	x := &batch{batchSource: sourcePlain, ops: make([]op, 0, min(b.sessionCalls.requests+b.plain.requests, batchLimit))}
	b.sessionCalls.fill(x)
	x.sessionOps = len(x.ops)
	b.plain.fill(x)
	return x
}

// contendedTurn reports whether the next batch is for contended calls: they alternate with the others.
func (b *batcher) contendedTurn(stopping bool) bool {
	switch {
	case b.contended.requests == 0, b.busyContended && !stopping:
		return false
	case b.lastContended:
		return b.sessionCalls.requests+b.plain.requests == 0
	default:
		return true
	}
}

// begin counts a batch as under way until done.
func (b *batcher) begin(x *batch, now time.Time) {
	x.began = now
	b.underWay = append(b.underWay, x)
}

// done ends a batch, whether it was committed or not. It reports whether a follow-up or a contended call that waited for it may begin now.
func (b *batcher) done(x *batch, now time.Time) (startable bool) {
	i := slices.Index(b.underWay, x)
	b.underWay = slices.Delete(b.underWay, i, i+1)
	startable, b.ended = b.followUps.done(x.batchSource), now
	if x.batchSource == sourceContended {
		b.busyContended, startable = false, b.contended.requests > 0
	}
	answered := x.callers + b.wokenWaiters
	b.wokenWaiters = 0
	if answered >= lingerFrom {
		if until := now.Add(min(now.Sub(x.began)/lingerPart, lingerMost)); until.After(b.linger.until) {
			b.linger = linger{until, len(x.ops) / 2}
		}
	}
	return startable
}

// ages returns how long the oldest transaction has been under way, and how long the oldest pending request has waited for one. An age is 0
// if there is no transaction or no request.
func (b *batcher) ages(now time.Time) (commit, pending time.Duration) {
	if len(b.underWay) > 0 {
		commit = now.Sub(b.underWay[0].began)
	}
	return commit, max(b.sessionCalls.age(now), b.plain.age(now), b.contended.age(now))
}

// stalled is how long requests have waited without the end of any transaction, in the committers and before them; 0: they have not.
func (b *batcher) stalled(now time.Time) time.Duration {
	oldest := max(b.ages(now))
	if b.ended.IsZero() {
		return oldest
	}
	return min(oldest, now.Sub(b.ended))
}

// clear drops all requests and returns those of callers.
func (b *batcher) clear() (pending []op) {
	for _, c := range slices.Concat(b.sessionCalls.calls, b.plain.calls, b.contended.calls) {
		pending = append(pending, c.ops...)
	}
	b.sessionCalls, b.plain, b.contended, b.followUps = backlog{}, backlog{}, backlog{}, followUps{}
	return pending
}
