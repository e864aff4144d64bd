package flow

import (
	"cmp"
	"time"
)

// Settings are what documents, submissions, schedules and rules can all set for an execution; 0: not set. A setting that is added here, and
// to Spans, reaches an execution from each of them.
type Settings struct {
	Timeout      time.Duration // one attempt: counted by a worker from its arrival there, by the engine from the claim; 0: the handler's default
	QueueTimeout time.Duration // from when an attempt is due to its claim; anew for each attempt; 0: none
	TotalTimeout time.Duration // everything, retries included; 0: none
}

// Span is a setting that is a length of time.
type Span struct {
	Name  string // as in documents and the API
	Value *time.Duration
}

// Spans are the settings of s that are lengths of time, to be read and set.
func (s *Settings) Spans() []Span {
	return []Span{{"timeout", &s.Timeout}, {"queue_timeout", &s.QueueTimeout}, {"total_timeout", &s.TotalTimeout}}
}

// SpanNames are the names of the settings that are lengths of time.
func SpanNames() (names []string) {
	for _, span := range new(Settings).Spans() {
		names = append(names, span.Name)
	}
	return names
}

// Over applies s over other settings: what s does not set is theirs.
func (s Settings) Over(other Settings) Settings {
	theirs := other.Spans()
	for i, span := range s.Spans() {
		*span.Value = cmp.Or(*span.Value, *theirs[i].Value)
	}
	return s
}

// Keeping is s, except that settings in which asked differs from was are taken from asked. was are the settings of a
// definition alone, so the differing ones were chosen by a submitter.
func (s Settings) Keeping(asked, was Settings) Settings {
	askeds, wases := asked.Spans(), was.Spans()
	for i, span := range s.Spans() {
		if *askeds[i].Value != *wases[i].Value {
			*span.Value = *askeds[i].Value
		}
	}
	return s
}
