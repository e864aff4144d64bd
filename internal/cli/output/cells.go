package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
)

// When writes a moment in UTC; nil gives "".
func When(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Count writes a number; 0 gives "".
func Count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// Memory writes the peak memory of an execution; "" if unknown.
func Memory(x *api.Execution) string {
	if x.PeakMemoryBytes == 0 {
		return ""
	}
	return Bytes(x.PeakMemoryBytes)
}

// Millis writes milliseconds for a list.
func Millis(ms float64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// Reason writes in one line why a rule started nothing.
func Reason(r *api.EnforceReason) string {
	if r == nil {
		return ""
	}
	message, _, _ := strings.Cut(r.Message, "\n")
	return r.Code + ": " + message
}

// Pause describes a pause: by whom, until when and why. It is empty if p is nil.
func Pause(p *api.Pause) string {
	if p == nil {
		return ""
	}
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if !p.Until.IsZero() {
		text += " until " + When(&p.Until)
	}
	if p.Timers == "stop" {
		text += ", its timers stand still"
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
