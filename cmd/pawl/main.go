// Command pawl runs work that must not be lost: evaluations of untrusted code and workflows of tasks. It is the
// engine, worker, server and command line in one binary.
package main

import (
	"os"

	"github.com/pawl-run/pawl/internal/cli"
	"github.com/pawl-run/pawl/internal/heap"
)

func main() {
	heap.Grow()
	os.Exit(cli.Main(os.Args[1:]))
}
