// Package pod runs inside the pods of the Kubernetes runtime: process 1 of the program's container starts the program,
// limits it and reports its end; the keeper, in its own container, holds the output and talks to the worker. Both are one
// program, small enough to be copied into each pod.
package pod
