package requests

import (
	"errors"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/problem"
)

// ProblemsBeneath prefixes the paths of a payload's problems with the payload's field. Other errors stay as they are.
func ProblemsBeneath(root string, err error) error {
	var ps definition.Problems
	if !errors.As(err, &ps) {
		return err
	}
	v := &fault.Invalid{}
	for _, p := range ps {
		path := root
		if p.Path != "" {
			path += "." + p.Path
		}
		v.Problems = append(v.Problems, problem.Problem{Path: path, Value: p.Value, Message: p.Message, Fix: p.Fix})
	}
	return v
}
