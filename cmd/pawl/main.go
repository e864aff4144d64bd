// Command pawl runs work that must not be lost: evaluations of untrusted code and workflows of tasks. It is engine,
// worker, server and command line in one binary.
package main

import (
	"os"

	"github.com/pawl-run/pawl/internal/heap"
)

func main() {
	heap.Grow()
	os.Exit(Main(os.Args[1:]))
}

// Main runs the command line with the process's own streams and returns its exit code.
func Main(args []string) int {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	return a.execute(args)
}
