package row

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

// layout is the first byte of an encoded request. A later layout will have another number.
const layout = 1

// Bits of a request: which fields follow, in this order. A new one goes last here, in AppendRequest and in the reader: rows are kept.
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
	hasGiven
	hasCache
	hasBeneath
	hasKeptWith
	hasNoCache // no bytes follow
	hasRetryOf
)

const defaultQueue = "default"

// AppendRequest appends the fields of a request that have no column of their own: all except Action, CreatedAt, Input and With.
func AppendRequest(b []byte, r *flow.Request) []byte {
	w := writer{b: append(b, layout)}
	created := Micros(r.CreatedAt)
	retries := r.Retry.MaxAttempts != 0 || r.Retry.Backoff != "" || r.Retry.Delay != 0 || r.Retry.MaxDelay != 0 ||
		r.Retry.Jitter != 0 || len(r.Retry.On) > 0
	again := r.AsRerun()
	var has uint64
	for bit, is := range [...]bool{!r.Parent.IsZero(), r.Version != 0, string(r.Kind) != r.Action, r.Queue != defaultQueue,
		r.Priority != 0, r.Key != "" || r.KeyLimit != 0 || r.WhenFull != "", r.Timeout != 0, r.QueueTimeout != 0,
		r.TotalTimeout != 0, retries, len(r.Labels) > 0, r.IdempotencyKey != "", r.Traceparent != "", !r.NotBefore.IsZero(),
		!r.Signal.IsZero() || len(r.Rules) > 0, r.Rate != (flow.Rate{}), r.Fair != (flow.Fair{}),
		!r.RerunOf.IsZero(), !r.ReusedOf.IsZero(), r.Alias != "", !again.First.IsZero(), len(again.Only) > 0, again.GivenBy != "",
		r.Cache != nil,
		len(again.Beneath) > 0, !again.KeptWith.IsZero(), r.NoCache, !again.RetryOf.IsZero()} {
		if is {
			has |= 1 << bit
		}
	}
	w.uint(has)
	if has&hasParent != 0 {
		w.id(r.Parent)
		w.int(int64(r.ParentAttempt))
		w.text(r.Task)
		w.int(int64(r.Index))
		w.int(int64(r.Depth))
	}
	if has&hasVersion != 0 {
		w.int(int64(r.Version))
	}
	if has&hasKind != 0 {
		w.text(string(r.Kind))
	}
	if has&hasQueue != 0 {
		w.text(r.Queue)
	}
	if has&hasPriority != 0 {
		w.int(int64(r.Priority))
	}
	if has&hasKey != 0 {
		w.text(r.Key)
		w.int(int64(r.KeyLimit))
		w.text(string(r.WhenFull))
	}
	if has&hasTimeout != 0 {
		w.duration(r.Timeout)
	}
	if has&hasQueueTimeout != 0 {
		w.duration(r.QueueTimeout)
	}
	if has&hasTotalTimeout != 0 {
		w.duration(r.TotalTimeout)
	}
	if has&hasRetry != 0 {
		w.retry(&r.Retry)
	}
	if has&hasLabels != 0 {
		w.uint(uint64(len(r.Labels)))
		for k, v := range r.Labels {
			w.text(k)
			w.text(v)
		}
	}
	if has&hasIdempotencyKey != 0 {
		w.text(r.IdempotencyKey)
	}
	if has&hasTraceparent != 0 {
		w.text(r.Traceparent)
	}
	if has&hasNotBefore != 0 {
		w.since(Micros(r.NotBefore), created)
	}
	if has&hasSignal != 0 {
		w.id(r.Signal)
		w.texts(r.Rules)
	}
	if has&hasRate != 0 {
		w.text(r.Rate.Key)
		w.int(int64(r.Rate.Limit))
		w.duration(r.Rate.Per)
		w.int(int64(r.Rate.Burst))
		w.text(string(r.Rate.Over))
	}
	if has&hasFair != 0 {
		w.text(r.Fair.By)
		w.int(int64(r.Fair.Weight))
	}
	if has&hasRerunOf != 0 {
		w.id(r.RerunOf)
	}
	if has&hasReusedOf != 0 {
		w.id(r.ReusedOf)
	}
	if has&hasAlias != 0 {
		w.text(r.Alias)
	}
	if has&hasRerunFirst != 0 {
		w.id(again.First)
	}
	if has&hasOnly != 0 {
		w.texts(again.Only)
		w.texts(again.LeftOut)
	}
	if has&hasGiven != 0 {
		w.given(again.GivenBy, again.Outputs)
	}
	if has&hasCache != 0 {
		w.bytes(r.Cache.Hash[:])
		w.duration(r.Cache.TTL)
	}
	if has&hasBeneath != 0 {
		w.uint(uint64(len(again.Beneath)))
		for i := range again.Beneath {
			b := &again.Beneath[i]
			w.text(b.Path)
			w.id(b.Of)
			w.id(b.First)
			w.int(int64(b.Version))
			w.bytes(b.Work[:])
			w.texts(b.Only)
			w.texts(b.LeftOut)
			w.given(b.GivenBy, b.Outputs)
		}
	}
	if has&hasKeptWith != 0 {
		w.id(again.KeptWith)
		w.text(again.KeptAs)
	}
	if has&hasRetryOf != 0 {
		w.id(again.RetryOf)
	}
	return w.b
}

func (w *writer) given(by string, outputs []flow.GivenOutput) {
	w.text(by)
	w.uint(uint64(len(outputs)))
	for i := range outputs {
		w.text(outputs[i].Task)
		w.int(int64(outputs[i].Index))
		w.bytes(outputs[i].Output)
	}
}

func (w *writer) retry(p *flow.Retry) {
	w.int(int64(p.MaxAttempts))
	w.text(string(p.Backoff))
	w.duration(p.Delay)
	w.duration(p.MaxDelay)
	w.float(p.Jitter)
	w.uint(uint64(len(p.On)))
	for _, on := range p.On {
		w.text(on)
	}
}

// KindWithin is the most bytes of a request's detail that DecodeKind needs: names have up to 100 bytes.
const KindWithin = 1000

// DecodeKind decodes the kind from the output of AppendRequest, or from its first KindWithin bytes.
func DecodeKind(action string, detail []byte) (flow.Kind, error) {
	r := flow.Request{Action: action}
	d := reader{b: detail}
	if _, err := d.beginning(&r); err != nil {
		return "", err
	}
	return r.Kind, d.err
}

// beginning decodes the fields of a request up to its kind, and returns which others follow.
func (r *reader) beginning(q *flow.Request) (has uint64, err error) {
	if v := r.take(1); len(v) == 1 && v[0] != layout {
		return 0, fmt.Errorf("%w: the request has layout %d, and this program knows %d", ErrDamaged, v[0], layout)
	}
	has = r.uint()
	if has&hasParent != 0 {
		q.Parent = r.id()
		q.ParentAttempt = int(r.int())
		q.Task = r.text()
		q.Index = int(r.int())
		q.Depth = int32(r.int())
	}
	if has&hasVersion != 0 {
		q.Version = int(r.int())
	}
	q.Kind = flow.Kind(q.Action)
	if has&hasKind != 0 {
		q.Kind = flow.Kind(r.text())
	}
	return has, nil
}

// DecodeRequest fills r from the output of AppendRequest; Action and CreatedAt must be set.
func DecodeRequest(r *flow.Request, detail []byte) error {
	d := reader{b: detail}
	has, err := d.beginning(r)
	if err != nil {
		return err
	}
	created := Micros(r.CreatedAt)
	r.Queue = defaultQueue
	if has&hasQueue != 0 {
		r.Queue = d.text()
	}
	if has&hasPriority != 0 {
		r.Priority = int(d.int())
	}
	if has&hasKey != 0 {
		r.Key = d.text()
		r.KeyLimit = int(d.int())
		r.WhenFull = flow.WhenFull(d.text())
	}
	if has&hasTimeout != 0 {
		r.Timeout = d.duration()
	}
	if has&hasQueueTimeout != 0 {
		r.QueueTimeout = d.duration()
	}
	if has&hasTotalTimeout != 0 {
		r.TotalTimeout = d.duration()
	}
	if has&hasRetry != 0 {
		d.retry(&r.Retry)
	}
	if has&hasLabels != 0 {
		n := d.uint()
		r.Labels = make(map[string]string, min(n, 64))
		for ; n > 0 && d.err == nil; n-- {
			k := d.text()
			r.Labels[k] = d.text()
		}
	}
	if has&hasIdempotencyKey != 0 {
		r.IdempotencyKey = d.text()
	}
	if has&hasTraceparent != 0 {
		r.Traceparent = d.text()
	}
	if has&hasNotBefore != 0 {
		r.NotBefore = d.since(created)
	}
	if has&hasSignal != 0 {
		r.Signal = d.id()
		r.Rules = d.texts()
	}
	if has&hasRate != 0 {
		r.Rate = flow.Rate{Key: d.text(), Limit: int(d.int()), Per: d.duration(), Burst: int(d.int()), Over: flow.Over(d.text())}
	}
	if has&hasFair != 0 {
		r.Fair = flow.Fair{By: d.text(), Weight: int(d.int())}
	}
	if has&hasRerunOf != 0 {
		r.RerunOf = d.id()
	}
	if has&hasReusedOf != 0 {
		r.ReusedOf = d.id()
	}
	if has&hasAlias != 0 {
		r.Alias = d.text()
	}
	if has&(hasRerunFirst|hasOnly|hasGiven|hasBeneath|hasKeptWith|hasRetryOf) != 0 {
		r.Rerun = new(flow.Rerun)
	}
	if has&hasRerunFirst != 0 {
		r.Rerun.First = d.id()
	}
	if has&hasOnly != 0 {
		r.Rerun.Only, r.Rerun.LeftOut = d.texts(), d.texts()
	}
	if has&hasGiven != 0 {
		r.Rerun.GivenBy, r.Rerun.Outputs = d.given()
	}
	r.NoCache = has&hasNoCache != 0
	if has&hasCache != 0 {
		r.Cache = new(flow.Cache)
		copy(r.Cache.Hash[:], d.bytes())
		r.Cache.TTL = d.duration()
	}
	if has&hasBeneath != 0 {
		for n := d.uint(); n > 0 && d.err == nil; n-- {
			b := flow.Beneath{Path: d.text(), Of: d.id(), First: d.id(), Version: int(d.int())}
			copy(b.Work[:], d.bytes())
			b.Only, b.LeftOut = d.texts(), d.texts()
			b.GivenBy, b.Outputs = d.given()
			r.Rerun.Beneath = append(r.Rerun.Beneath, b)
		}
	}
	if has&hasKeptWith != 0 {
		r.Rerun.KeptWith, r.Rerun.KeptAs = d.id(), d.text()
	}
	if has&hasRetryOf != 0 {
		r.Rerun.RetryOf = d.id()
	}
	return d.err
}

func (r *reader) given() (by string, outputs []flow.GivenOutput) {
	by = r.text()
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		outputs = append(outputs, flow.GivenOutput{Task: r.text(), Index: int(r.int()), Output: r.bytes()})
	}
	return by, outputs
}

func (r *reader) texts() (all []string) {
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		all = append(all, r.text())
	}
	return all
}

func (r *reader) retry(p *flow.Retry) {
	p.MaxAttempts = int(r.int())
	p.Backoff = flow.Backoff(r.text())
	p.Delay = r.duration()
	p.MaxDelay = r.duration()
	p.Jitter = r.float()
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		p.On = append(p.On, r.text())
	}
}
