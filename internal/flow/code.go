package flow

import (
	"regexp"
	"slices"
)

// ErrorCode is a code that the error of an execution of a built-in kind, or of any execution, can have.
type ErrorCode struct {
	Code string
	// Kinds are the kinds whose executions end with it; none: all kinds, including custom handlers.
	Kinds []Kind
	Stage Stage // in which the attempt ends
	Retry RetryUse
	// Meaning is a sentence for the reference of codes and for messages.
	Meaning string
}

// RetryUse is what a retry policy does with a code.
type RetryUse uint8

const (
	RetryOn     RetryUse = iota // retried if the policy's On has it, or is empty
	RetryNever                  // never tried again
	RetryAlways                 // retried whatever On has
)

// Codes of HTTP calls that got no answer. A call that took too long ends with CodeTimeout.
const (
	CodeDNSFailed         = "dns_failed"
	CodeConnectionRefused = "connection_refused"
	CodeConnectionLost    = "connection_lost"
	CodeUnreachable       = "unreachable"
	CodeTLSFailed         = "tls_failed"
	CodeTooManyRedirects  = "too_many_redirects"
	CodeConnectionFailed  = "connection_failed"
)

// connectionCodes are the codes behind CodeConnectionFailed in a policy: the same call may succeed later.
var connectionCodes = []string{CodeDNSFailed, CodeConnectionRefused, CodeConnectionLost, CodeUnreachable, CodeTLSFailed}

// CodeHTTP is the listed form of an unexpected status; the code itself has the number, as in http_503.
const CodeHTTP = "http_STATUS"

var (
	programs = []Kind{KindCode, KindContainer}
	calls    = []Kind{KindHTTP, KindLLM, KindWebhook}
)

// errorCodes are the codes of executions. The test of package task compares them with the codes that tasks return.
var errorCodes = []ErrorCode{
	{CodeTimeout, nil, TimedOut, RetryOn, "The attempt took longer than its timeout, or than the wall-clock limit of the program; of a wait: no signal came in time"},
	{CodeTotalTimeout, nil, TimedOut, RetryNever, "Everything together, retries included, took longer than total_timeout"},
	{CodeQueueTimeout, nil, TimedOut, RetryNever, "No worker took it within queue_timeout"},
	{CodeWorkerLost, nil, Failed, RetryAlways, "The worker died or was cut off; without a policy there are 3 attempts"},
	{CodeInfraError, nil, Failed, RetryOn, "The host could not run it, or took it away. An attempt that a host took away (a lost or preempted node) is tried again up to 10 times without a policy"},
	{CodeInvalidInput, nil, Failed, RetryNever, "The payload or the input does not fit the kind or the definition"},
	{CodeHandlerError, nil, Failed, RetryOn, "The handler returned an error without a code, or panicked"},
	{CodeInternal, nil, Failed, RetryOn, "A defect of Pawl, or a limit that was not reported earlier"},
	{CodeCancelled, nil, Cancelled, RetryNever, "It was cancelled by a person, or because its workflow ends"},
	{CodeKeyFull, nil, Cancelled, RetryNever, "Its concurrency key was full, and when_full is cancel_new"},
	{CodeSuperseded, nil, Cancelled, RetryNever, "A later execution took its slot of the key, and when_full is cancel_oldest"},
	{CodeRateExceeded, nil, Cancelled, RetryNever, "The rate of its key was used up, and over is drop"},

	{CodeNonzeroExit, programs, Failed, RetryOn, "The program ended with an exit code other than 0; exit:N names one"},
	{"signal", programs, Failed, RetryOn, "The program died of a signal that it caused, such as SIGSEGV"},
	{"cpu_timeout", programs, TimedOut, RetryOn, "The program used more CPU time than limits.cpu"},
	{"oom", programs, Failed, RetryOn, "The program ran out of memory: limits.memory"},
	{"output_limit", programs, Failed, RetryOn, "The program wrote more than limits.output"},
	{CodeIdle, []Kind{KindCode}, TimedOut, RetryOn, "The interactive program got no input and wrote no output for the time of idle_limit"},
	{"killed", programs, Cancelled, RetryNever, "The program was stopped from outside: a cancel, or a worker that ends"},
	{CodeInvalidOutput, programs, Failed, RetryOn, "The content of $PAWL_OUTPUT is not a valid value"},
	{"compile_error", []Kind{KindCode}, Failed, RetryOn, "The compiler refused the source"},
	{"syntax_error", []Kind{KindCode}, Failed, RetryOn, "The interpreter refused the source before it ran"},
	{"wrong_answer", []Kind{KindCode}, Failed, RetryOn, "The output of a case is not the expected one"},
	{"checker_error", []Kind{KindCode}, Failed, RetryOn, "The checker or interactor of a case did not say whether the program is right"},

	{CodeHTTP, calls, Failed, RetryOn, "The answer had this status, such as http_503, and it was not an expected one. Retry-After of 429 and 503 is kept"},
	{CodeDNSFailed, calls, Failed, RetryOn, "The name of the host has no address"},
	{CodeConnectionRefused, calls, Failed, RetryOn, "Nothing listens at the address"},
	{CodeConnectionLost, calls, Failed, RetryOn, "The other side closed the connection before its answer was complete"},
	{CodeUnreachable, calls, Failed, RetryOn, "No route leads to the host or its network"},
	{CodeTLSFailed, calls, Failed, RetryOn, "The certificate is not valid, or the other side does not speak TLS"},
	{CodeTooManyRedirects, calls, Failed, RetryOn, "There were too many redirects, one after the other"},
	{CodeConnectionFailed, calls, Failed, RetryOn, "Any other fault of the connection. In retry.on it stands for dns_failed, connection_refused, connection_lost, unreachable and tls_failed as well"},
	{"address_refused", calls, Failed, RetryOn, "The address is private, and the operator's allow_hosts does not name it"},
	{"response_too_large", []Kind{KindHTTP, KindLLM}, Failed, RetryOn, "The answer has more bytes than max_bytes allows (llm: 10 MiB)"},
	{"invalid_response", []Kind{KindHTTP, KindLLM}, Failed, RetryOn, "The answer has another format than the request asked for: JSON, or a chat completion"},
	{"stream_cut", []Kind{KindLLM}, Failed, RetryOn, "The answer ended before the server said that it was complete"},
	{"llm_error", []Kind{KindLLM}, Failed, RetryOn, "The server broke the answer off with an error"},
	{"secret_unavailable", []Kind{KindWebhook}, Failed, RetryOn, "The worker cannot read the secret, or it is not a secret of Standard Webhooks"},
	{CodeGone, []Kind{KindWebhook}, Failed, RetryNever, "The receiver answered 410: it wants no more of these events"},

	{CodeTaskFailed, []Kind{KindWorkflow}, Failed, RetryOn, "A task failed, which the message names"},
	{CodeExpressionError, []Kind{KindWorkflow}, Failed, RetryOn, "An expression of a task, or of outputs, could not be evaluated"},
	{CodeNotReached, []Kind{KindWorkflow}, Failed, RetryOn, "Of a task with repeat, as its workflow sees it: it has had all its rounds, and until did not hold"},
	{CodeInquiryExpired, []Kind{KindAsk}, TimedOut, RetryOn, "No answer came in time; another attempt asks again"},
	{CodeDeclined, []Kind{KindAsk}, Failed, RetryNever, "The answer was not the one that accepts"},
}

// ErrorCodes are all codes, those of every execution first.
func ErrorCodes() []ErrorCode { return slices.Clone(errorCodes) }

var httpCode = regexp.MustCompile(`^http_[1-5][0-9][0-9]$`)

// ErrorCodeOf is the entry of a code; known is false for codes that only custom handlers have.
func ErrorCodeOf(code string) (c ErrorCode, known bool) {
	if httpCode.MatchString(code) {
		code = CodeHTTP
	} else if code == CodeHTTP {
		return c, false
	}
	i := slices.IndexFunc(errorCodes, func(c ErrorCode) bool { return c.Code == code })
	if i < 0 {
		return c, false
	}
	return errorCodes[i], true
}
