package row

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

// SignalDetail encodes the detail of a signal as JSON, which people can also read in the database.
func SignalDetail(d *flow.SignalDetail) string {
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("encode the detail of a signal: %v", err)) // strings always have a JSON form
	}
	return string(b)
}

// DecodeSignalDetail decodes the output of SignalDetail into a signal; an error becomes the signal's Damage.
func DecodeSignalDetail(s *flow.Signal, text []byte) {
	if err := json.Unmarshal(text, &s.SignalDetail); err != nil {
		s.SignalDetail, s.Damage = flow.SignalDetail{}, fmt.Sprintf("its detail cannot be decoded: %v", err)
	}
}

// Reason encodes as JSON why a rule has not started anything; "" for none.
func Reason(r *flow.Reason) string {
	if *r == (flow.Reason{}) {
		return ""
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("encode a reason: %v", err)) // strings always have a JSON form
	}
	return string(b)
}

// DecodeReason decodes the output of Reason.
func DecodeReason(r *flow.Reason, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, r); err != nil {
		return fmt.Errorf("read the reason of an enforcement: %w", err)
	}
	return nil
}

// StateOfFolded returns the state of the other enforcements of a window, given the state of the leading one.
func StateOfFolded(lead flow.EnforcementState) flow.EnforcementState {
	if lead == flow.EnforcementRan {
		return flow.EnforcementFolded
	}
	return lead
}
