package flow

import "errors"

var (
	// ErrIllegalMove means that the lifecycle tables do not allow an event in a stage.
	ErrIllegalMove = errors.New("illegal move")
	// ErrFinished means that the execution has ended; its outcome never changes.
	ErrFinished = errors.New("execution has finished")
)
