package row

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

// layout is the first byte of an encoded request. A later layout will have another number.
const layout = 1

// Bits of a request: the fields that follow, in this order. A new one must be last here and in the list of fields, because stored rows stay
// valid.
const (
	hasParent uint64 = 1 << iota
	hasVersion
	hasKind  // if it is not the name of the action
	hasQueue // if it is not "default"
	hasPriority
	hasKey
	hasTimeout
	hasQueueTimeout
	hasTotalTimeout
	hasRetry
	hasLabels
	hasIdempotencyKey
	hasTraceparent
	hasNotBefore
	hasSignal
	hasRate
	hasFair
	hasRerunOf
	hasReusedOf
	hasAlias
	hasRerunFirst // if it is not RerunOf
	hasOnly
	hasOverride
	hasCache
	hasBeneath
	hasKeptWith
	hasNoCache // no bytes follow
	hasRetryOf

	ofRerun = hasRerunFirst | hasOnly | hasOverride | hasBeneath | hasKeptWith | hasRetryOf
)

const defaultQueue = "default"

// AppendRequest appends the fields of a request without a column of their own: all except Action, CreatedAt, Input and With.
func AppendRequest(b []byte, r *flow.Request) []byte {
	c := codec{writer: writer{b: append(b, layout)}}
	c.set(hasParent, !r.Parent.IsZero())
	c.set(hasVersion, r.Version != 0)
	c.set(hasKind, string(r.Kind) != r.Action)
	c.set(hasQueue, r.Queue != defaultQueue)
	c.set(hasPriority, r.Priority != 0)
	c.set(hasKey, r.Key != "" || r.KeyLimit != 0 || r.WhenFull != "")
	c.set(hasTimeout, r.Timeout != 0)
	c.set(hasQueueTimeout, r.QueueTimeout != 0)
	c.set(hasTotalTimeout, r.TotalTimeout != 0)
	c.set(hasRetry, r.Retry.MaxAttempts != 0 || r.Retry.Backoff != "" || r.Retry.Delay != 0 || r.Retry.MaxDelay != 0 ||
		r.Retry.Jitter != 0 || len(r.Retry.On) > 0)
	c.set(hasLabels, len(r.Labels) > 0)
	c.set(hasIdempotencyKey, r.IdempotencyKey != "")
	c.set(hasTraceparent, r.Traceparent != "")
	c.set(hasNotBefore, !r.NotBefore.IsZero())
	c.set(hasSignal, !r.Signal.IsZero() || len(r.Rules) > 0)
	c.set(hasRate, r.Rate != (flow.Rate{}))
	c.set(hasFair, r.Fair != (flow.Fair{}))
	c.set(hasRerunOf, !r.RerunOf.IsZero())
	c.set(hasReusedOf, !r.ReusedOf.IsZero())
	c.set(hasAlias, r.Alias != "")
	if again := r.Rerun; again != nil {
		c.set(hasRerunFirst, !again.First.IsZero())
		c.set(hasOnly, len(again.Only) > 0)
		c.set(hasOverride, again.OverriddenBy != "")
		c.set(hasBeneath, len(again.Beneath) > 0)
		c.set(hasKeptWith, !again.KeptWith.IsZero())
		c.set(hasRetryOf, !again.RetryOf.IsZero())
	}
	c.set(hasCache, r.Cache != nil)
	c.set(hasNoCache, r.NoCache)
	c.writer.uint(c.has)
	c.beginning(r)
	c.request(r)
	return c.writer.b
}

// KindWithin is how many bytes of a request's detail DecodeKind needs at most: names have up to 100 bytes.
const KindWithin = 1000

// DecodeKind decodes the kind from the output of AppendRequest, or from its first KindWithin bytes.
func DecodeKind(action string, detail []byte) (flow.Kind, error) {
	r := flow.Request{Action: action, Kind: flow.Kind(action)}
	c, err := requestReader(detail)
	if err != nil {
		return "", err
	}
	c.beginning(&r)
	return r.Kind, c.reader.err
}

// DecodeRequest fills r from the output of AppendRequest; Action and CreatedAt must be set.
func DecodeRequest(r *flow.Request, detail []byte) error {
	c, err := requestReader(detail)
	if err != nil {
		return err
	}
	r.Kind, r.Queue, r.NoCache = flow.Kind(r.Action), defaultQueue, c.has&hasNoCache != 0
	c.beginning(r)
	c.request(r)
	return c.reader.err
}

// requestReader reads which fields follow in an encoded request.
func requestReader(detail []byte) (c codec, err error) {
	c = codec{reading: true, reader: reader{b: detail}}
	if v := c.take(1); len(v) == 1 && v[0] != layout {
		return c, fmt.Errorf("%w: the request has layout %d, and this program knows %d", ErrDamaged, v[0], layout)
	}
	c.has = c.reader.uint()
	return c, nil
}

// beginning encodes or decodes the fields of a request up to its kind.
func (c *codec) beginning(r *flow.Request) {
	if c.has == 0 {
		return
	}
	c.id(hasParent, &r.Parent)
	number(c, hasParent, &r.ParentAttempt)
	text(c, hasParent, &r.Task)
	number(c, hasParent, &r.Index)
	number(c, hasParent, &r.Depth)
	number(c, hasVersion, &r.Version)
	text(c, hasKind, &r.Kind)
}

// request encodes or decodes the other fields. The bits are in the order of the fields, so a request without the rare fields at the end
// skips the checks for them.
func (c *codec) request(r *flow.Request) {
	if c.has < hasQueue {
		return
	}
	text(c, hasQueue, &r.Queue)
	number(c, hasPriority, &r.Priority)
	text(c, hasKey, &r.Key)
	number(c, hasKey, &r.KeyLimit)
	text(c, hasKey, &r.WhenFull)
	number(c, hasTimeout, &r.Timeout)
	number(c, hasQueueTimeout, &r.QueueTimeout)
	number(c, hasTotalTimeout, &r.TotalTimeout)
	number(c, hasRetry, &r.Retry.MaxAttempts)
	text(c, hasRetry, &r.Retry.Backoff)
	number(c, hasRetry, &r.Retry.Delay)
	number(c, hasRetry, &r.Retry.MaxDelay)
	c.float(hasRetry, &r.Retry.Jitter)
	c.texts(hasRetry, &r.Retry.On)
	c.labels(hasLabels, &r.Labels)
	text(c, hasIdempotencyKey, &r.IdempotencyKey)
	text(c, hasTraceparent, &r.Traceparent)
	c.moment(hasNotBefore, &r.NotBefore, Micros(r.CreatedAt))
	if c.has < hasSignal {
		return
	}
	c.id(hasSignal, &r.Signal)
	c.texts(hasSignal, &r.Rules)
	text(c, hasRate, &r.Rate.Key)
	number(c, hasRate, &r.Rate.Limit)
	number(c, hasRate, &r.Rate.Per)
	number(c, hasRate, &r.Rate.Burst)
	text(c, hasRate, &r.Rate.Over)
	text(c, hasFair, &r.Fair.By)
	number(c, hasFair, &r.Fair.Weight)
	c.id(hasRerunOf, &r.RerunOf)
	c.id(hasReusedOf, &r.ReusedOf)
	text(c, hasAlias, &r.Alias)
	if c.has&(ofRerun|hasCache) == 0 {
		return
	}
	again := part(c, ofRerun, &r.Rerun)
	if again == nil {
		again = new(flow.Rerun)
	}
	c.id(hasRerunFirst, &again.First)
	c.texts(hasOnly, &again.Only)
	c.texts(hasOnly, &again.LeftOut)
	c.override(hasOverride, &again.OverriddenBy, &again.Outputs)
	if k := part(c, hasCache, &r.Cache); k != nil {
		c.sum(hasCache, &k.Hash)
		number(c, hasCache, &k.TTL)
	}
	each(c, hasBeneath, &again.Beneath, func(b *flow.Beneath) {
		text(c, hasBeneath, &b.Path)
		c.id(hasBeneath, &b.Of)
		c.id(hasBeneath, &b.First)
		number(c, hasBeneath, &b.Version)
		c.sum(hasBeneath, &b.Work)
		c.texts(hasBeneath, &b.Only)
		c.texts(hasBeneath, &b.LeftOut)
		c.override(hasBeneath, &b.OverriddenBy, &b.Outputs)
	})
	c.id(hasKeptWith, &again.KeptWith)
	text(c, hasKeptWith, &again.KeptAs)
	c.id(hasRetryOf, &again.RetryOf)
}

func (c *codec) override(bit uint64, by *string, outputs *[]flow.OutputOverride) {
	text(c, bit, by)
	each(c, bit, outputs, func(o *flow.OutputOverride) {
		text(c, bit, &o.Task)
		number(c, bit, &o.Index)
		c.bytes(bit, (*[]byte)(&o.Output))
	})
}
