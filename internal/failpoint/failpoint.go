// Package failpoint marks the moments between two steps at which a crash must do no harm. In a program built with
// -tags failpoints the process kills itself at the moment that $PAWL_FAILPOINT names ("after-commit:17" is the 17th
// time that moment comes); in every other program a mark is nothing.
package failpoint

const (
	// Variable is the environment variable that names the moment.
	Variable = "PAWL_FAILPOINT"
	// Said begins the line on standard error that the process writes at its moment: "failpoint NAME: …".
	Said = "failpoint "
)

// The moments.
const (
	BeforeCommit = "before-commit" // of the engine: decided, the commit not sent
	AfterCommit  = "after-commit"  // committed, nobody told
	AfterTell    = "after-tell"    // watchers and sessions told, callers not answered
	SignalKept   = "signal-kept"   // as after-commit, of a commit with signals
	WaitKept     = "wait-kept"     // of one with waits that begin, have looked or have ended
	TickKept     = "tick-kept"     // of one with ticks of schedules
	AnswerKept   = "answer-kept"   // of one with an answer to an inquiry
	WindowKept   = "window-kept"   // of one with windows that open, grow or close
	Evaluating   = "evaluating"    // something that users wrote is evaluated: "evaluating=NAME" is a moment of the document NAME
	BeforeAnswer = "before-answer" // a remote worker's call carried out, not answered
	AfterAnswer  = "after-answer"  // answered
	AfterPut     = "after-put"     // an answer put into a worker's reply queue at a broker
	BeforeSettle = "before-settle" // a message from a broker committed and answered, not deleted there
	AfterSend    = "after-send"    // of a worker: a message given to a broker
	BeforeStart  = "before-start"  // of a worker: work claimed, not begun
	BeforeReport = "before-report" // done, not reported
	AfterReport  = "after-report"  // reported, the receipt not read
)

// All lists the moments of servers and of workers.
func All() (servers, workers []string) {
	return []string{BeforeCommit, AfterCommit, AfterTell, SignalKept, WaitKept, TickKept, AnswerKept, WindowKept, BeforeAnswer, AfterAnswer}, []string{BeforeStart, BeforeReport, AfterReport}
}

// OfBrokers lists those that come only where workers are behind a broker.
func OfBrokers() (servers, workers []string) {
	return []string{AfterPut, BeforeSettle}, []string{AfterSend}
}
