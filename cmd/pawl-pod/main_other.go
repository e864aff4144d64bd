//go:build !linux

// Command pawl-pod is the helper in the pods of the Kubernetes runtime, which need Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "pawl-pod: pods run Linux: build it with GOOS=linux")
	os.Exit(1)
}
