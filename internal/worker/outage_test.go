package worker

import (
	"errors"
	"testing"
	"time"
)

// An outage is logged when it begins, when its reason changes, and once a minute; not at every retry.
func TestOutageIsSaidOnce(t *testing.T) {
	t.Parallel()
	var o outage
	begin := time.Now()
	refused, reset := errors.New("connection refused"), errors.New("connection reset")
	for i, c := range []struct {
		err   error
		after time.Duration
		want  bool
	}{
		{refused, 0, true}, {refused, time.Second, false}, {refused, 59 * time.Second, false}, {refused, time.Minute, true},
		{reset, 61 * time.Second, true}, {reset, 62 * time.Second, false},
	} {
		if got := o.worthSaying(c.err, begin.Add(c.after)); got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
}
