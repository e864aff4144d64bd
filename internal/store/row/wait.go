package row

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/wirejson"
)

// WaitDetail encodes the rarely used part of a wait as JSON.
func WaitDetail(d *flow.WaitDetail) ([]byte, error) {
	text, err := wirejson.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write a wait: %w", err)
	}
	return text, nil
}

// DecodeWaitDetail decodes the output of WaitDetail into a wait; an error becomes the wait's damage.
func DecodeWaitDetail(w *flow.Wait, text []byte) {
	if err := json.Unmarshal(text, &w.WaitDetail); err != nil {
		w.WaitDetail, w.Damage = flow.WaitDetail{}, fmt.Sprintf("its detail cannot be decoded: %v", err)
	}
}
