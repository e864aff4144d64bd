// Package failpoint marks the moments between two steps at which a crash must do no harm. In a program built with
// -tags failpoints the process kills itself at the moment that $PAWL_FAILPOINT names ("after-commit:17" is the 17th
// time); in any other program a mark does nothing.
package failpoint

const (
	// Variable is the environment variable that names the moment.
	Variable = "PAWL_FAILPOINT"
	// Said is the start of the line that the process writes to standard error at its moment: "failpoint NAME: …".
	Said = "failpoint "
)

const (
	BeforeCommit = "before-commit" // in the engine: decided, commit not sent
	AfterCommit  = "after-commit"  // committed, nobody told
	AfterTell    = "after-tell"    // watchers and sessions notified, callers not answered
	SignalKept   = "signal-kept"   // like after-commit, for a commit with signals
	WaitKept     = "wait-kept"     // with waits that start, have looked or have ended
	TickKept     = "tick-kept"     // with ticks of schedules
	AnswerKept   = "answer-kept"   // with an answer to an inquiry
	WindowKept   = "window-kept"   // with windows that open, grow or close
	Evaluating   = "evaluating"    // while a user's text is evaluated: "evaluating=NAME" is a moment of the document NAME
	BeforeAnswer = "before-answer" // a remote worker's call executed, not answered
	AfterAnswer  = "after-answer"  // answered
	AfterPut     = "after-put"     // an answer put into a worker's reply queue at a broker
	BeforeSettle = "before-settle" // a broker's message committed and answered, not deleted there
	AfterSend    = "after-send"    // in a worker: a message given to a broker
	BeforeStart  = "before-start"  // in a worker: work claimed, not started
	BeforeReport = "before-report" // done, not reported
	AfterReport  = "after-report"  // reported, the receipt not read
)

func All() (servers, workers []string) {
	return []string{BeforeCommit, AfterCommit, AfterTell, SignalKept, WaitKept, TickKept, AnswerKept, WindowKept, BeforeAnswer, AfterAnswer}, []string{BeforeStart, BeforeReport, AfterReport}
}

// OfBrokers returns the moments that occur only with workers behind a broker.
func OfBrokers() (servers, workers []string) {
	return []string{AfterPut, BeforeSettle}, []string{AfterSend}
}
