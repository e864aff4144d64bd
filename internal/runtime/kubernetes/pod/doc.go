// Package pod is what runs inside the pods of the Kubernetes runtime: process 1 of the program's container, which starts the
// program, limits it and reports its end, and the keeper in a container of its own, which holds the output and speaks with
// the worker. It is a program of its own, small enough to be copied into each pod.
package pod
