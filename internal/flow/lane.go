package flow

import (
	"slices"
	"strings"
)

// Lane is where in a queue an execution waits, in one word that stores keep as they keep a queue: the queue itself for
// what every worker of it can run, or a part of it for what needs a certain runtime, or a language that only some have
// (as its offer). A worker takes from the lanes that
// it can serve, so what it cannot run costs it nothing and stands in nobody's way.
func Lane(queue, runtime string) string {
	if runtime == "" {
		return queue
	}
	return queue + laneMark + runtime
}

// laneMark is in the name of no queue.
const laneMark = "@"

// SplitLane undoes Lane.
func SplitLane(lane string) (queue, runtime string) {
	queue, runtime, _ = strings.Cut(lane, laneMark)
	return queue, runtime
}

// Lanes are those that a worker serves: each of its queues, and each of them for every runtime and language that is
// among the kinds of work that it does.
func Lanes(queues, kinds []string) []string {
	lanes := append([]string(nil), queues...)
	for _, kind := range kinds {
		need, ok := strings.CutPrefix(kind, runtimeOffer)
		if _, language := OfferedLanguage(kind); language {
			need, ok = kind, true
		}
		if ok && need != "" {
			for _, q := range queues {
				if lane := Lane(q, need); !slices.Contains(lanes, lane) {
					lanes = append(lanes, lane)
				}
			}
		}
	}
	return lanes
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
