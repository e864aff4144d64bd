package row

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

// WaitDetail is the JSON text of the lesser part of a wait.
func WaitDetail(d *flow.WaitDetail) ([]byte, error) {
	text, err := flow.PlainJSON(d)
	if err != nil {
		return nil, fmt.Errorf("write a wait: %w", err)
	}
	return text, nil
}

// DecodeWaitDetail reads what WaitDetail wrote.
func DecodeWaitDetail(d *flow.WaitDetail, text []byte) error {
	if err := json.Unmarshal(text, d); err != nil {
		return fmt.Errorf("%w: a wait: %w", ErrDamaged, err)
	}
	return nil
}
