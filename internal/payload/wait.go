package payload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Wait is the payload of kind "wait": the signal to wait for. Package definition checks if.
type Wait struct {
	Signal  string `json:"signal" check:"trigger"`
	Subject string `json:"subject,omitempty"` // default: signals for the workflow itself
	// Since is "workflow" (its creation, the default), "now", or a duration before the workflow's creation.
	Since     string          `json:"since,omitempty"`
	Vars      json.RawMessage `json:"vars,omitempty"`
	If        string          `json:"if,omitempty"`
	Timeout   api.Duration    `json:"timeout,omitempty"`
	OnTimeout json.RawMessage `json:"on_timeout,omitempty"` // "fail" or null

	From time.Duration `json:"-"` // from Since: how long before the workflow's creation
	Now  bool          `json:"-"` // Since is "now"
	Null bool          `json:"-"` // OnTimeout is null
}

// Limits of a wait, in bytes.
const (
	mostSubject = 512
	mostVars    = 64 << 10
	mostIf      = 8_000
)

// Signal reads the payload of kind "wait". The error is a *strictjson.Error that lists all errors.
func Signal(payload []byte) (*Wait, error) {
	w, err := decode[Wait](payload)
	if err != nil {
		return nil, err
	}
	return &w, nil
}

func checkTrigger(r *strictjson.Reader, at string, v reflect.Value) {
	if say := flow.BadTrigger(v.String()); say != "" {
		r.ProblemAt(at, v.String(), say, flow.TriggerForm)
	}
}

func wholeWait(r *strictjson.Reader, w *Wait) {
	for _, f := range []struct {
		at   string
		size int
		most int
	}{{"subject", len(w.Subject), mostSubject}, {"vars", len(w.Vars), mostVars}, {"if", len(w.If), mostIf}} {
		if f.size > f.most {
			r.ProblemAt(f.at, "", fmt.Sprintf("it has %d bytes", f.size), fmt.Sprintf("at most %d", f.most))
		}
	}
	switch w.Since {
	case "", "workflow":
	case "now":
		w.Now = true
	default:
		d, err := duration.Parse(w.Since)
		if err != nil || d < 0 || d > mostExpires {
			r.ProblemAt("since", w.Since, "it is not a moment to look from", "write workflow, now, or a time span before the workflow's creation, such as 1h")
		}
		w.From = d
	}
	if d := time.Duration(w.Timeout); d < 0 || d > mostExpires {
		r.ProblemAt("timeout", "", "it is out of range", "give a time span of more than 0 and up to 366 days")
	}
	switch text := string(w.OnTimeout); text {
	case "", `"fail"`:
	case "null", `"null"`:
		w.Null = true
	default:
		r.ProblemAt("on_timeout", text, "it is not a known value", "write fail or null")
	}
	if w.OnTimeout != nil && w.Timeout == 0 {
		r.ProblemAt("on_timeout", "", "the wait never times out", `add timeout, such as "3d"`)
	}
}
