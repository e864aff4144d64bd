package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// whenText writes a moment in UTC; nothing for none.
func whenText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func memoryText(x *api.Execution) string {
	if x.PeakMemoryBytes == 0 {
		return ""
	}
	return output.Bytes(x.PeakMemoryBytes)
}

// millis writes milliseconds for a list.
func millis(ms float64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// reasonText writes on one line why a rule has started nothing.
func reasonText(r *api.EnforceReason) string {
	if r == nil {
		return ""
	}
	message, _, _ := strings.Cut(r.Message, "\n")
	return r.Code + ": " + message
}

// pauseText says of something whether it is paused, by whom, until when and why; nothing where it is not.
func pauseText(p *api.Pause) string {
	if p == nil {
		return ""
	}
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if !p.Until.IsZero() {
		text += " until " + whenText(&p.Until)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
