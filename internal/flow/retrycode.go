package flow

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// attemptCodes are the codes with which an attempt of a built-in kind can end, beside http_ and a status: the engine's, the verdicts of
// package runtime and of cases, and those of calls over HTTP.
var attemptCodes = []string{
	CodeTimeout, CodeNonzeroExit, CodeWorkerLost, CodeInfraError, CodeTaskFailed, CodeExpressionError, CodeNotReached, CodeQueueTimeout,
	CodeInvalidInput, CodeInvalidOutput, CodeHandlerError, CodeGone, CodeInquiryExpired, CodeDeclined, CodeRerunRefused, CodeInternal,
	"oom", "signal", "cpu_timeout", "output_limit", "killed", "compile_error", "syntax_error", "wrong_answer", "checker_error", "idle",
	CodeDNSFailed, CodeConnectionRefused, CodeConnectionLost, CodeUnreachable, CodeTLSFailed, CodeTooManyRedirects, CodeConnectionFailed,
	"address_refused", "response_too_large", "invalid_response", "llm_error", "stream_cut", "secret_unavailable",
}

// connectionCodes are what CodeConnectionFailed stands for in a policy: the same call may succeed later.
var connectionCodes = []string{CodeDNSFailed, CodeConnectionRefused, CodeConnectionLost, CodeUnreachable, CodeTLSFailed}

// Codes of calls over HTTP that got no answer. One that took too long ends with CodeTimeout.
const (
	CodeDNSFailed         = "dns_failed"         // the name of the host has no address
	CodeConnectionRefused = "connection_refused" // nothing listens there
	CodeConnectionLost    = "connection_lost"    // the other side closed it before its answer was complete
	CodeUnreachable       = "unreachable"        // no route leads to the host or its network
	CodeTLSFailed         = "tls_failed"         // the certificate is not valid, or the other side does not speak TLS
	CodeTooManyRedirects  = "too_many_redirects"
	CodeConnectionFailed  = "connection_failed" // any other fault of the connection
)

var httpStatus = regexp.MustCompile(`^http_[1-5][0-9][0-9]$`)

// AttemptCodes lists the codes with which attempts of built-in kinds can end, beside http_ and a status.
func AttemptCodes() []string { return slices.Clone(attemptCodes) }

// BadRetryCode reports whether an entry of Retry.On can match no failure of the kind: it is "exit:" without an exit code, or a code with
// which no attempt of a built-in kind ends. Custom handlers have codes of their own, and so have workflows, which may end with those.
func BadRetryCode(s string, kind Kind) bool {
	if code, ok := strings.CutPrefix(s, "exit:"); ok {
		n, err := strconv.Atoi(code)
		return err != nil || n < 1 || n > 255 || strconv.Itoa(n) != code
	}
	return kind.AdHoc() && !slices.Contains(attemptCodes, s) && !httpStatus.MatchString(s)
}
