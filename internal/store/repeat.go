package store

import "errors"

// maxConflicts is how many times in a row a transaction is run if its rows change concurrently.
const maxConflicts = 10

// Repeat runs a transaction, and runs it again after ErrConflict; n counts the runs from 1. For example, replicas that start with an empty
// store declare the same names at the same time, and all but one of them get a conflict.
func Repeat(run func(n int) error) error {
	for n := 1; ; n++ {
		err := run(n)
		if !errors.Is(err, ErrConflict) || n == maxConflicts {
			return err
		}
	}
}
