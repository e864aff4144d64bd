package store

import "fmt"

// Result returns the result of a store's method: v, or if there is an error the zero value and the error after a description of the
// operation.
func Result[T any](v T, err error, doing string, of ...any) (T, error) {
	if err != nil {
		return *new(T), Failed(err, doing, of...)
	}
	return v, nil
}

// Failed puts a description of the operation before an error; it returns nil for nil. If a method returns several values, the others are
// meaningless when there is an error.
func Failed(err error, doing string, of ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, of...), err)
}
