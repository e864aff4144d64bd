package flow

import "testing"

// What can match no failure is known by its form and, of built-in kinds, by their codes.
func TestBadRetryCode(t *testing.T) {
	for _, good := range []string{"timeout", "oom", "http_429", "exit:1", "exit:255", "connection_failed", "dns_failed"} {
		if BadRetryCode(good, KindCode) || BadRetryCode(good, "charge") {
			t.Errorf("%s is refused", good)
		}
	}
	for _, bad := range []string{"nope", "exit:0", "exit:256", "exit:01", "exit:", "exit:x", "http_42", "http_600", "Timeout", ""} {
		if !BadRetryCode(bad, KindNoop) {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, own := range []string{"card_declined", "Declined"} {
		if BadRetryCode(own, "charge") || BadRetryCode(own, KindWorkflow) {
			t.Errorf("the code %s of a handler is refused", own)
		}
	}
	r := Retry{MaxAttempts: 2, On: []string{CodeConnectionFailed}}
	if !r.Matches(CodeDNSFailed, 0) || !r.Matches(CodeConnectionFailed, 0) || r.Matches(CodeTimeout, 0) {
		t.Error("connection_failed stands for the faults of connections")
	}
}
