// Command temporal runs the workloads on Temporal: all services of its server in this process, on PostgreSQL, and a worker written with
// its Go SDK. It is a separate program because the server is ten times as large as everything else.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pawl-run/pawl/bench/trial"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "temporal: started by bench, with a trial's specification")
		os.Exit(2)
	}
	err := trial.Serve(os.Args[1], func(ctx context.Context, s trial.Spec) (trial.Peer, error) { return open(ctx, s) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
