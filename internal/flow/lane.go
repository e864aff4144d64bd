package flow

import (
	"slices"
	"strings"
)

// A lane is where in a queue an execution waits, in one word that stores keep as they keep a queue: the queue itself for
// what every worker of it can run, or a part of it for what not all of them can. Needs are what that part is for, each in
// a word: a runtime by its name, a language that only some have (as its offer), a label of workers as key=value. Their
// order is fixed, so equal needs are one lane. A worker takes from the lanes that it can serve, so what it cannot run
// costs it nothing and stands in nobody's way.

const (
	// laneMark is in the name of no queue.
	laneMark = "@"
	// needMark is between the needs of a lane, and in none of them.
	needMark = ","
)

// LaneLimit bounds the name of a lane, in bytes.
const LaneLimit = 512

// Lane is the lane of a queue for what has the needs.
func Lane(queue string, needs ...string) string {
	switch len(needs) {
	case 0:
		return queue
	case 1:
		return queue + laneMark + needs[0]
	}
	needs = slices.Clone(needs)
	slices.Sort(needs)
	return queue + laneMark + strings.Join(slices.Compact(needs), needMark)
}

// SplitLane undoes Lane.
func SplitLane(lane string) (queue string, needs []string) {
	queue, rest, narrow := strings.Cut(lane, laneMark)
	if !narrow {
		return queue, nil
	}
	return queue, strings.Split(rest, needMark)
}

// Narrow reports whether a lane is a part of its queue only.
func Narrow(lane string) bool { return strings.Contains(lane, laneMark) }

// AddNeeds is the lane for what needs more than a lane says.
func AddNeeds(lane string, needs ...string) string {
	if len(needs) == 0 {
		return lane
	}
	queue, all := SplitLane(lane)
	return Lane(queue, append(all, needs...)...)
}

// Relane is the lane after settings that name another queue (or none), and labels that a worker must have: they come
// beside those of the lane, and in place of those with the same key.
func Relane(lane, queue string, labels map[string]string) string {
	switch {
	case queue == "" && len(labels) == 0:
		return lane
	case len(labels) == 0 && !Narrow(lane):
		return queue
	}
	of, needs := SplitLane(lane)
	if queue != "" {
		of = queue
	}
	needs = slices.DeleteFunc(needs, func(need string) bool {
		key, _, is := strings.Cut(need, labelMark)
		_, again := labels[key]
		return is && again
	})
	for key, value := range labels {
		needs = append(needs, key+labelMark+value)
	}
	return Lane(of, needs...)
}

// Needs is what a lane asks of a worker, for people.
type Needs struct {
	Runtime string            // and a language, as its offer; both by commas
	Labels  map[string]string // nil: none
}

// NeedsOf sorts the needs of a lane.
func NeedsOf(lane string) (queue string, n Needs) {
	queue, needs := SplitLane(lane)
	for _, need := range needs {
		if key, value, is := strings.Cut(need, labelMark); is {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[key] = value
		} else if n.Runtime == "" {
			n.Runtime = need
		} else {
			n.Runtime += needMark + need
		}
	}
	return queue, n
}

// BadNeed reports whether a word, such as the name of a runtime, cannot be a need that is not a label.
func BadNeed(need string) bool {
	return need == "" || strings.ContainsAny(need, laneMark+needMark+labelMark)
}

// Reach is which lanes a worker serves. The zero value serves none.
type Reach struct {
	queues []string
	has    map[string]bool
}

// ReachOf tells from a worker's queues and the kinds of work that it does, offers among them, which lanes it serves.
func ReachOf(queues, kinds []string) Reach {
	r := Reach{queues: queues}
	for _, kind := range kinds {
		need, ok := strings.CutPrefix(kind, runtimeOffer)
		if !ok {
			need, ok = strings.CutPrefix(kind, labelOffer)
		}
		if _, language := OfferedLanguage(kind); language {
			need, ok = kind, true
		}
		if ok && need != "" {
			if r.has == nil {
				r.has = map[string]bool{}
			}
			r.has[need] = true
		}
	}
	return r
}

// Plain reports whether the worker serves its queues and no part of them.
func (r Reach) Plain() bool { return len(r.has) == 0 }

// Serves reports whether the worker serves a lane.
func (r Reach) Serves(lane string) bool {
	queue, rest, narrow := strings.Cut(lane, laneMark)
	if !slices.Contains(r.queues, queue) {
		return false
	}
	if narrow {
		for need := range strings.SplitSeq(rest, needMark) {
			if !r.has[need] {
				return false
			}
		}
	}
	return true
}

// Lacks is which needs of a lane the worker does not meet; ok is false for a lane of a queue that it does not serve.
func (r Reach) Lacks(lane string) (needs []string, ok bool) {
	queue, all := SplitLane(lane)
	if !slices.Contains(r.queues, queue) {
		return nil, false
	}
	return slices.DeleteFunc(all, func(need string) bool { return r.has[need] }), true
}

const runtimeOffer = "runtime:"

// OfferRuntime is how a worker says, among the kinds of work that it does, that it has a runtime.
func OfferRuntime(name string) string { return runtimeOffer + name }

const languageOffer = "code:"

// OfferLanguage is how a worker says, among the kinds of work that it does, that it brings a language of its own.
func OfferLanguage(name string) string { return languageOffer + name }

// OfferedLanguage is the language of such an offer.
func OfferedLanguage(kind string) (name string, ok bool) {
	name, ok = strings.CutPrefix(kind, languageOffer)
	return name, ok && name != ""
}
