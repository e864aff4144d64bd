package row

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

// SignalDetail is what stores keep of a signal as JSON, for people who read the database as well.
func SignalDetail(d *flow.SignalDetail) string {
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("encode the detail of a signal: %v", err)) // it consists of texts
	}
	return string(b)
}

// SignalBody is what stores keep of a signal's body; nil for none.
func SignalBody(s *flow.Signal) []byte {
	if s.Body == ([32]byte{}) {
		return nil
	}
	return s.Body[:]
}

// DecodeSignalDetail reads what SignalDetail wrote into a signal, or notes its damage.
func DecodeSignalDetail(s *flow.Signal, text []byte) {
	if err := json.Unmarshal(text, &s.SignalDetail); err != nil {
		s.SignalDetail, s.Damage = flow.SignalDetail{}, fmt.Sprintf("its detail cannot be decoded: %v", err)
	}
}

// Reason is what stores keep of why a rule has started nothing, as JSON; "" for none.
func Reason(r *flow.Reason) string {
	if *r == (flow.Reason{}) {
		return ""
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("encode a reason: %v", err)) // it consists of texts
	}
	return string(b)
}

// DecodeReason reads what Reason wrote.
func DecodeReason(r *flow.Reason, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, r); err != nil {
		return fmt.Errorf("read the reason of an enforcement: %w", err)
	}
	return nil
}

// StateOfFolded is the state of the enforcements that go with one that leads them out of a window.
func StateOfFolded(lead flow.EnforcementState) flow.EnforcementState {
	if lead == flow.EnforcementRan {
		return flow.EnforcementFolded
	}
	return lead
}
