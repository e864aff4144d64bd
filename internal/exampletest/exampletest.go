// Package exampletest is for examples that run a whole Pawl with package pawltest, which needs a *testing.T that examples do not
// have.
package exampletest

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"testing"
)

// New returns a test object for an example, which is valid until stop is called. If it fails, the program ends.
func New() (t testing.TB, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &example{ctx: ctx, cancel: cancel}
	return e, e.stop
}

// example has the methods that package pawltest calls; any other is called on the nil interface and panics.
type example struct {
	testing.TB
	ctx    context.Context
	cancel context.CancelFunc
	after  []func()
}

func (e *example) Helper()                  {}
func (e *example) Context() context.Context { return e.ctx }
func (e *example) Output() io.Writer        { return os.Stderr }
func (e *example) Cleanup(f func())         { e.after = append(e.after, f) }
func (e *example) Fatal(v ...any)           { log.Fatal(v...) }
func (e *example) Fatalf(f string, v ...any) {
	log.Fatalf(f, v...)
}

// Errorf makes the example fail, because it prints more than the expected output.
func (e *example) Errorf(f string, v ...any) { fmt.Printf(f+"\n", v...) }

func (e *example) TempDir() string {
	dir, err := os.MkdirTemp("", "pawl-example-")
	if err != nil {
		log.Fatal(err)
	}
	e.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// stop does what the end of a test does: it ends the context, then runs the clean-ups, the latest first.
func (e *example) stop() {
	e.cancel()
	for _, f := range slices.Backward(e.after) {
		f()
	}
}
