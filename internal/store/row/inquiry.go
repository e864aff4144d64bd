package row

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

// Question is the JSON text of a question.
func Question(q *flow.Question) ([]byte, error) {
	text, err := flow.PlainJSON(q)
	if err != nil {
		return nil, fmt.Errorf("write a question: %w", err)
	}
	return text, nil
}

// DecodeQuestion reads what Question wrote.
func DecodeQuestion(q *flow.Question, text []byte) error {
	if err := json.Unmarshal(text, q); err != nil {
		return fmt.Errorf("%w: a question: %w", ErrDamaged, err)
	}
	return nil
}

// Answer is the JSON text of an answer; nil of none.
func Answer(a *flow.Answer) ([]byte, error) {
	if a == nil {
		return nil, nil
	}
	text, err := flow.PlainJSON(a)
	if err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return text, nil
}

// DecodeAnswer reads what Answer wrote.
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
