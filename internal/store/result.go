package store

import "fmt"

// Result is what a method of a store returns: a value, or with an error its zero value, and the error behind what was being done.
func Result[T any](v T, err error, doing string, of ...any) (T, error) {
	if err != nil {
		return *new(T), Failed(err, doing, of...)
	}
	return v, nil
}

// Failed puts what was being done before an error; nil for nil. Where a method returns several values, those beside an error mean nothing.
func Failed(err error, doing string, of ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, of...), err)
}
