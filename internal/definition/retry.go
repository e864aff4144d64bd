package definition

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

var retryCode = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,99}$`)

// retry reads a retry policy. kind is the built-in kind to which it applies; "": any, including custom handlers.
func (b *builder) retry(v *value, path string, kind flow.Kind) *flow.Retry {
	if v == nil {
		return nil
	}
	r := &flow.Retry{}
	if v.kind == numberValue {
		r.MaxAttempts, _ = b.whole(v, path, 1, 100)
		return r
	}
	if v.kind != objectValue {
		b.fail(v, path, "write how many attempts there are in all, as in retry: 3, or an object such as {max_attempts: 3, delay: 5s}",
			"want a number or an object, not %s", v.describe())
		return nil
	}
	b.object(v, path, []string{"max_attempts", "backoff", "delay", "max_delay", "jitter", "on"})
	if n := v.get("max_attempts"); n != nil {
		r.MaxAttempts, _ = b.whole(n, problem.Join(path, "max_attempts"), 1, 100)
	} else {
		b.fail(v, path, "add max_attempts: 3", "max_attempts is missing")
	}
	r.Backoff = flow.Backoff(b.oneOf(v.get("backoff"), problem.Join(path, "backoff"), string(flow.Constant), string(flow.Exponential)))
	r.Delay = b.duration(v.get("delay"), problem.Join(path, "delay"), false)
	r.MaxDelay = b.duration(v.get("max_delay"), problem.Join(path, "max_delay"), false)
	if r.MaxDelay != 0 && r.MaxDelay < r.Delay {
		b.fail(v.get("max_delay"), problem.Join(path, "max_delay"), "make it at least the delay", "max_delay %s is less than the delay %s", r.MaxDelay, r.Delay)
	}
	r.Jitter = b.share(v.get("jitter"), problem.Join(path, "jitter"))
	r.On = b.retryOn(v.get("on"), problem.Join(path, "on"), kind)
	return r
}

func (b *builder) retryOn(v *value, path string, kind flow.Kind) []string {
	if v == nil {
		return nil
	}
	list := v.list
	if v.kind == textValue {
		list = []*value{v}
	} else if v.kind != listValue {
		b.fail(v, path, `write on: [timeout, "exit:75"]`, "want a list of error codes, not %s", v.kind)
		return nil
	}
	if len(list) == 0 || len(list) > 100 {
		b.fail(v, path, "leave it out to retry every failure", "the list has %d codes; 1 to 100 are allowed", len(list))
		return nil
	}
	on := make([]string, 0, len(list))
	for i, el := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		s := b.plainText(el, at, 1000)
		switch message, fix := BadRetryCode(s, kind); {
		case s == "":
		case message != "" && !b.trusted:
			b.fail(el, at, fix, "%q %s", problem.Clip(s, 60), message)
		case !strings.HasPrefix(s, "exit:") && !retryCode.MatchString(s):
			b.fail(el, at, "write an error code such as timeout, oom, nonzero_exit, or exit:1 to exit:255", "%q is not an error code", problem.Clip(s, 60))
		default:
			on = append(on, s)
		}
	}
	return on
}

// BadRetryCode returns the error of an entry in a policy's on, and its fix. kind is the built-in kind to which the policy applies. Custom
// handlers have codes of their own, and so have workflows, which may end with those: for them only misspellings are refused.
func BadRetryCode(code string, kind flow.Kind) (message, fix string) {
	if n, isExit := strings.CutPrefix(code, "exit:"); isExit {
		if exitCode(n) {
			return "", ""
		}
		return "is not an error code", "write exit:1 to exit:255"
	}
	c, known := flow.ErrorCodeOf(code)
	switch {
	case known && c.Retry == flow.RetryNever:
		return "is a code after which nothing is tried again", "remove it"
	case known:
		return "", ""
	case strings.HasPrefix(code, "http_") && kind.AdHoc():
		return "is not an error code of " + string(kind), "write http_ and the status, as in http_503"
	}
	var codes []string
	for _, c := range flow.ErrorCodes() {
		if c.Retry != flow.RetryNever && c.Code != flow.CodeHTTP {
			codes = append(codes, c.Code)
		}
	}
	near := problem.Nearest(code, codes)
	if near == "" && !kind.AdHoc() {
		return "", ""
	}
	if message = "is not an error code"; kind.BuiltIn() {
		message += " of " + string(kind)
	}
	return message, cmp.Or(near, "the codes are "+strings.Join(codes, ", ")+", http_503 and other statuses, and exit:1 to exit:255")
}

func exitCode(s string) bool {
	n := 0
	for _, r := range s {
		if r < '0' || r > '9' || n > 255 {
			return false
		}
		n = 10*n + int(r-'0')
	}
	return s != "" && s[0] != '0' && n <= 255
}

// kindOf returns the built-in kind of the document or task that has the settings; "" if that is not known here.
func kindOf(v *value) flow.Kind {
	if v.get("tasks") != nil {
		return flow.KindWorkflow
	}
	if a := v.get("action"); a != nil && BuiltIn(a.text) {
		return flow.Kind(a.text)
	}
	return ""
}
