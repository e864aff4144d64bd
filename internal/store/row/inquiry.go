package row

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/wirejson"
)

// Question encodes a question as JSON.
func Question(q *flow.Question) ([]byte, error) {
	text, err := wirejson.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("write a question: %w", err)
	}
	return text, nil
}

// DecodeQuestion decodes the output of Question.
func DecodeQuestion(q *flow.Question, text []byte) error {
	if err := json.Unmarshal(text, q); err != nil {
		return fmt.Errorf("%w: a question: %w", ErrDamaged, err)
	}
	return nil
}

// Answer encodes an answer as JSON; nil if there is none.
func Answer(a *flow.Answer) ([]byte, error) {
	if a == nil {
		return nil, nil
	}
	text, err := wirejson.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return text, nil
}

// DecodeAnswer decodes the output of Answer.
func DecodeAnswer(text []byte) (*flow.Answer, error) {
	if len(text) == 0 {
		return nil, nil
	}
	a := &flow.Answer{}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("%w: an answer: %w", ErrDamaged, err)
	}
	return a, nil
}
