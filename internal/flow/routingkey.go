package flow

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultQueue is the queue of executions that name no queue.
const DefaultQueue = "default"

// A routing key is the name of a queue, or of the part of a queue for executions with the same needs. Stores treat it like the name of a
// queue; the API and the documents for users call the part a lane:
//
//	default                  every worker of the queue can run it
//	default@docker           needs the runtime docker
//	gpu@docker,gpu=a100      needs that runtime, and a worker with the label gpu=a100
//
// A need is one word: the name of a runtime, a language that only some workers have (as its offer), a label of workers as key=value, a
// custom kind, an action that is paused (SuspendedKey). The needs are sorted, so equal needs are one routing key. A worker takes only from
// the routing keys that it can serve, so executions that it cannot run cost it nothing and block no other work.

const (
	// routingMark is in no queue's name.
	routingMark = "@"
	// needMark separates the needs of a routing key, and is in none of them.
	needMark = ","
)

// RoutingKeyLimit bounds the name of a routing key, in bytes.
const RoutingKeyLimit = 512

func RoutingKey(queue string, needs ...string) string {
	switch len(needs) {
	case 0:
		return queue
	case 1:
		return queue + routingMark + needs[0]
	}
	needs = slices.Clone(needs)
	slices.Sort(needs)
	return queue + routingMark + strings.Join(slices.Compact(needs), needMark)
}

func SplitRoutingKey(routingKey string) (queue string, needs []string) {
	queue, rest, narrow := strings.Cut(routingKey, routingMark)
	if !narrow {
		return queue, nil
	}
	return queue, strings.Split(rest, needMark)
}

// Narrow reports whether a routing key is only for a part of its queue.
func Narrow(routingKey string) bool { return strings.Contains(routingKey, routingMark) }

func AddNeeds(routingKey string, needs ...string) string {
	if len(needs) == 0 {
		return routingKey
	}
	queue, all := SplitRoutingKey(routingKey)
	return RoutingKey(queue, append(all, needs...)...)
}

// kindNeed is the prefix of a custom kind's name.
const kindNeed = "kind:"

// NeedBuiltIns represents the built-in kinds in the result of Lacks: routing keys name no need for them.
const NeedBuiltIns = kindNeed

// ForKind adds a custom kind, for example "resize", to the needs of a routing key, so that only workers with a handler for it get the
// execution. For a built-in kind the key stays as it is.
func ForKind(routingKey string, kind Kind) string {
	if kind.BuiltIn() {
		return routingKey
	}
	return AddNeeds(routingKey, kindNeed+string(kind))
}

// NeededKind is the custom kind of a need.
func NeededKind(need string) (kind Kind, ok bool) {
	name, ok := strings.CutPrefix(need, kindNeed)
	return Kind(name), ok
}

// actionNeed is the prefix of a paused action's name. No worker has it.
const actionNeed = "action:"

// SuspendedKey is the routing key under which executions of a paused action wait: workers do not read it, so any number of them costs
// claims nothing.
func SuspendedKey(routingKey, action string) string {
	return AddNeeds(ResumedKey(routingKey), actionNeed+action)
}

// ResumedKey is the routing key from which SuspendedKey has moved an execution; another routing key is returned as it is.
func ResumedKey(routingKey string) string {
	queue, needs := SplitRoutingKey(routingKey)
	if isAction := func(need string) bool { return strings.HasPrefix(need, actionNeed) }; slices.ContainsFunc(needs, isAction) {
		return RoutingKey(queue, slices.DeleteFunc(needs, isAction)...)
	}
	return routingKey
}

// PausedAction is the paused action whose executions wait under a routing key that SuspendedKey has made; ok is false for every other
// routing key.
func PausedAction(routingKey string) (action string, ok bool) {
	_, rest, _ := strings.Cut(routingKey, routingMark)
	for need := range strings.SplitSeq(rest, needMark) {
		if action, ok = strings.CutPrefix(need, actionNeed); ok {
			return action, true
		}
	}
	return "", false
}

// Reroute is the routing key after settings that name another queue (or none) and worker labels: these are added to those of the routing
// key, and replace those with the same key.
func Reroute(routingKey, queue string, labels map[string]string) string {
	switch {
	case queue == "" && len(labels) == 0:
		return routingKey
	case len(labels) == 0 && !Narrow(routingKey):
		return queue
	}
	base, needs := SplitRoutingKey(routingKey)
	if queue != "" {
		base = queue
	}
	needs = slices.DeleteFunc(needs, func(need string) bool {
		key, _, ok := strings.Cut(need, labelMark)
		_, again := labels[key]
		return ok && again
	})
	for key, value := range labels {
		needs = append(needs, key+labelMark+value)
	}
	return RoutingKey(base, needs...)
}

// Needs is what a routing key requires of a worker, for people.
type Needs struct {
	Handler string            // the custom kind
	Runtime string            // and languages, as their offers; separated by commas
	Labels  map[string]string // nil: none
}

// NeedsOf sorts the needs of a routing key.
func NeedsOf(routingKey string) (queue string, n Needs) {
	queue, needs := SplitRoutingKey(routingKey)
	for _, need := range needs {
		if key, value, ok := strings.Cut(need, labelMark); ok {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[key] = value
		} else if kind, ok := NeededKind(need); ok {
			n.Handler = string(kind)
		} else if strings.HasPrefix(need, actionNeed) {
			continue // the worker that takes it needs nothing for that
		} else if n.Runtime == "" {
			n.Runtime = need
		} else {
			n.Runtime += needMark + need
		}
	}
	return queue, n
}

// BadNeed reports whether a word cannot be required as a runtime or language: no need has that form, or it is a need of another kind.
func BadNeed(need string) bool {
	return need == "" || strings.ContainsAny(need, routingMark+needMark+labelMark) || strings.HasPrefix(need, kindNeed) ||
		strings.HasPrefix(need, actionNeed)
}

// Reach is the routing keys that a worker serves. The zero value serves none.
type Reach struct {
	queues  []string
	has     map[string]bool // the needs that it meets
	builtIn bool            // it runs the built-in kinds: it serves routing keys that need no custom kind
}

// ReachOf is the reach of a worker with some queues and kinds of work, with its offers among the kinds. A worker that names no kind runs
// the built-in ones. A worker that names some of Standard and not the others serves no routing key for built-in kinds: it could get an
// execution of a kind that it does not run.
func ReachOf(queues, kinds []string) Reach {
	r := Reach{queues: queues}
	named := false
	for _, kind := range kinds {
		need, ok := strings.CutPrefix(kind, runtimeOffer)
		if !ok {
			need, ok = strings.CutPrefix(kind, labelOffer)
		}
		if _, language := OfferedLanguage(kind); language {
			need, ok = kind, true
		}
		if !ok && !strings.HasPrefix(kind, languageOffer) {
			named = true
			need, ok = kindNeed+kind, !Kind(kind).BuiltIn()
		}
		if ok && need != "" {
			if r.has == nil {
				r.has = map[string]bool{}
			}
			r.has[need] = true
		}
	}
	r.builtIn = !named || !slices.ContainsFunc(standard, func(k Kind) bool { return !slices.Contains(kinds, string(k)) })
	return r
}

// CheckKinds returns why a worker cannot have these kinds of work.
func CheckKinds(kinds []string) error {
	var has, lacks []string
	for _, kind := range kinds {
		if Kind(kind).ByEngine() {
			return fmt.Errorf("no worker runs executions of kind %s: leave it out", kind)
		}
		if Kind(kind) == KindContainer {
			has = append(has, kind)
		}
	}
	for _, kind := range standard {
		if slices.Contains(kinds, string(kind)) {
			has = append(has, string(kind))
		} else {
			lacks = append(lacks, string(kind))
		}
	}
	if len(has) == 0 || len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("a worker runs all of the built-in kinds or none, and this one runs %s but not %s: add those, or leave the others out",
		strings.Join(has, " and "), strings.Join(lacks, ", "))
}

// Plain reports whether the worker serves whole queues and no parts of them.
func (r Reach) Plain() bool { return r.builtIn && len(r.has) == 0 }

// Queues are the routing keys without needs that the worker serves.
func (r Reach) Queues() []string {
	if !r.builtIn {
		return nil
	}
	return r.queues
}

func (r Reach) Serves(routingKey string) bool {
	queue, rest, narrow := strings.Cut(routingKey, routingMark)
	if !slices.Contains(r.queues, queue) {
		return false
	}
	custom := false
	if narrow {
		for need := range strings.SplitSeq(rest, needMark) {
			if !r.has[need] || strings.HasPrefix(need, actionNeed) { // a worker may offer any word as a runtime
				return false
			}
			custom = custom || strings.HasPrefix(need, kindNeed)
		}
	}
	return custom || r.builtIn
}

// Lacks is the needs of a routing key that the worker does not meet; ok is false if it does not serve the routing key's queue.
func (r Reach) Lacks(routingKey string) (needs []string, ok bool) {
	queue, all := SplitRoutingKey(routingKey)
	if !slices.Contains(r.queues, queue) {
		return nil, false
	}
	if !r.builtIn && !slices.ContainsFunc(all, func(need string) bool { return strings.HasPrefix(need, kindNeed) }) {
		all = append(all, NeedBuiltIns)
	}
	return slices.DeleteFunc(all, func(need string) bool { return r.has[need] }), true
}

// Shown are the routing keys of a worker that are shown even if they are empty: its queues, if it runs the built-in kinds; and for each
// custom kind the kind's own queue, or the kind in each other queue that the worker serves.
func (r Reach) Shown() []string {
	shown := slices.Clone(r.Queues())
	for _, queue := range r.queues {
		if own := kindNeed + queue; r.has[own] {
			shown = append(shown, RoutingKey(queue, own))
			continue
		}
		for need := range r.has {
			if strings.HasPrefix(need, kindNeed) {
				shown = append(shown, RoutingKey(queue, need))
			}
		}
	}
	slices.Sort(shown)
	return shown
}

const runtimeOffer = "runtime:"

// OfferRuntime is the form of a worker's runtime among the kinds that it offers.
func OfferRuntime(name string) string { return runtimeOffer + name }

const languageOffer = "code:"

// OfferLanguage is the form of a worker's own language among the kinds that it offers.
func OfferLanguage(name string) string { return languageOffer + name }

// OfferedLanguage is the language in such an offer.
func OfferedLanguage(kind string) (name string, ok bool) {
	name, ok = strings.CutPrefix(kind, languageOffer)
	return name, ok && name != ""
}
