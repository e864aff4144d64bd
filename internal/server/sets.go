package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// sets remembers which uploaded lists of cases are valid, since thousands of evaluations use the same list.
type sets struct {
	mu   sync.Mutex
	well map[string]bool // by SHA-256 and by the other fields on which the check depends
}

// setsKept is how many lists are remembered.
const setsKept = 1000

// take reports whether a list is known to be valid, or records that it is.
func (s *sets) take(key string, well bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if well && !s.well[key] {
		if s.well == nil || len(s.well) == setsKept {
			s.well = map[string]bool{}
		}
		s.well[key] = true
	}
	return s.well[key]
}

// wrongSet checks the uploaded list that holds the cases of code. The engine refuses a list that does not exist.
func (c *call) wrongSet(code *api.Code) (refused, err error) {
	set := payload.SetOf(code)
	sum, ok := blob.ParseSum(set)
	if !ok {
		return nil, nil
	}
	mode := ""
	if code.Compare != nil {
		mode = code.Compare.Mode
	}
	key := set + " " + code.Language + " " + mode
	if c.sets.take(key, false) {
		return nil, nil
	}
	list, refused, err := c.setContent(sum)
	if list == nil || refused != nil || err != nil {
		return refused, err
	}
	alone := api.Code{Language: code.Language, Source: code.Source, Compare: code.Compare}
	_, err = payload.WithSet(alone, list)
	var wrong *strictjson.Error
	switch {
	case errors.As(err, &wrong):
		// A list of thousands of cases may have as many errors.
		const most = 20
		var all []api.FieldError
		for _, p := range wrong.Problems[:min(most, len(wrong.Problems))] {
			p.Message = "in the set: " + p.Message
			all = append(all, api.FieldError(p))
		}
		return invalid(all...), nil
	case err != nil:
		return nil, err
	}
	c.sets.take(key, true)
	return nil, nil
}

// setContent reads an uploaded list; nil if it does not exist.
func (c *call) setContent(sum blob.Sum) (list []byte, refused, err error) {
	r, u, err := c.Engine.Uploads().Open(c.ctx(), sum)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read a set of cases: %w", err)
	}
	defer func() { _ = r.Close() }()
	if u.Size > int64(api.MaxSet) {
		return nil, invalid(api.FieldError{Path: "cases.set", Value: blob.SumText(sum), Message: fmt.Sprintf("it has %d bytes", u.Size),
			Fix: fmt.Sprintf("at most %d; several evaluations take more", api.MaxSet)}), nil
	}
	if list, err = io.ReadAll(r); err != nil {
		return nil, nil, fmt.Errorf("read a set of cases: %w", err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(list), []byte("[")) {
		return nil, invalid(api.FieldError{Path: "cases.set", Value: blob.SumText(sum), Message: "it is not a list of cases",
			Fix: `upload a JSON list such as [{"stdin": "1 2", "expect": "3"}]`}), nil
	}
	return list, nil, nil
}
