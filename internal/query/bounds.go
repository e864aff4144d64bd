package query

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Bounds are properties, in a store's terms, that every execution which meets a condition has. Zero fields mean no bound.
type Bounds struct {
	Stages []flow.Stage
	Action string
	Labels map[string]string
	Codes  []string  // ended with one of these errors
	Since  time.Time // created at or after
	Until  time.Time // created before
	// Never means that no execution meets the condition. Exact means that every execution within the bounds meets it.
	Never, Exact bool
}

// span is the bound on stages and creation times: for these, an or is bounded too, by the union of its parts.
type span struct {
	stages       stages
	since, until time.Time // zero: not bounded
}

type stages uint64

var everyStage = stagesOf(flow.Stages()...)

func stagesOf(all ...flow.Stage) (s stages) {
	for _, stage := range all {
		s |= 1 << stage
	}
	return s
}

func stagesWhere(is func(flow.Stage) bool) (s stages) {
	for _, stage := range flow.Stages() {
		if is(stage) {
			s |= stagesOf(stage)
		}
	}
	return s
}

func (s stages) list() (all []flow.Stage) {
	for _, stage := range flow.Stages() {
		if s&stagesOf(stage) != 0 {
			all = append(all, stage)
		}
	}
	return all
}

func (q *Query) Bounds() Bounds {
	s := spanOf(q.root)
	b := Bounds{Since: s.since, Until: s.until, Exact: true}
	if s.stages != everyStage {
		b.Stages = s.stages.list()
	}
	b.Never = s.stages == 0 || !s.since.IsZero() && !s.until.IsZero() && !s.since.Before(s.until)
	all, isAnd := q.root.(and)
	if !isAnd {
		all = and{q.root}
	}
	for _, n := range all {
		t, isTerm := n.(*term)
		b.Exact = isTerm && b.with(t) && b.Exact
	}
	return b
}

// completed is the verdict of completed executions in stores; for others it is the code of their error.
const completed = "ok"

// with adds the bounds of a term beyond its span, and reports whether the bounds now express the whole term.
func (b *Bounds) with(t *term) bool {
	f := &t.field
	if f.about == ofStatus || f.about == ofCreated {
		return true
	}
	if t.negated || t.op != is {
		return false
	}
	one := t.values[0].text
	switch {
	case f.about == ofAction && len(t.values) == 1:
		b.Never = b.Never || b.Action != "" && b.Action != one
		b.Action = one
		return true
	case f.about == ofLabel && len(t.values) == 1:
		if had, has := b.Labels[f.name]; has && had != one {
			b.Never = true
		}
		if b.Labels == nil {
			b.Labels = map[string]string{}
		}
		b.Labels[f.name] = one
		return true
	case f.about == ofError && b.Codes == nil && !slices.ContainsFunc(t.values, func(v value) bool { return v.text == completed }):
		for _, v := range t.values {
			b.Codes = append(b.Codes, v.text)
		}
		slices.Sort(b.Codes)
		b.Codes = slices.Compact(b.Codes)
		return true
	}
	return false
}

func spanOf(n node) span {
	s := span{stages: everyStage}
	switch n := n.(type) {
	case and:
		for _, part := range n {
			p := spanOf(part)
			s.stages &= p.stages
			if p.since.After(s.since) {
				s.since = p.since
			}
			if s.until.IsZero() || !p.until.IsZero() && p.until.Before(s.until) {
				s.until = p.until
			}
		}
	case or:
		for i, part := range n {
			p := spanOf(part)
			if i == 0 {
				s = p
				continue
			}
			s.stages |= p.stages
			if s.since.IsZero() || p.since.Before(s.since) {
				s.since = p.since
			}
			if p.until.IsZero() || !s.until.IsZero() && p.until.After(s.until) {
				s.until = p.until
			}
		}
	case *term:
		return n.span()
	}
	return s
}

// tick is the shortest time that a store distinguishes.
const tick = time.Microsecond

func (t *term) span() span {
	s := span{stages: everyStage}
	switch t.field.about {
	case ofStatus:
		if t.op == is {
			s.stages = stagesWhere(func(stage flow.Stage) bool { return t.text(stage.String()) })
		}
		if t.negated {
			s.stages = everyStage &^ s.stages
		}
	case ofCreated:
		op := t.op
		if t.negated { // every execution has a creation time
			op = map[operator]operator{less: atLeast, atMost: more, more: atMost, atLeast: less, exists: exists}[op]
		}
		switch op {
		case less:
			s.until = t.values[0].at
		case atMost:
			s.until = t.values[0].at.Add(tick)
		case more:
			s.since = t.values[0].at.Add(tick)
		case atLeast:
			s.since = t.values[0].at
		case exists:
			if t.negated {
				s.stages = 0
			}
		}
	case ofFinished:
		if !t.negated {
			s.stages = stagesWhere(flow.Stage.Terminal)
		} else if t.op == exists {
			s.stages = stagesWhere(func(stage flow.Stage) bool { return !stage.Terminal() })
		}
	case ofError:
		if !t.negated {
			s.stages = stagesOf(flow.Failed, flow.TimedOut, flow.Cancelled)
		}
	case ofWorker:
		if !t.negated {
			s.stages = stagesOf(flow.Provisioning, flow.Running)
		}
	}
	return s
}
