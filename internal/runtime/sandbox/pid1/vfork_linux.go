//go:build amd64 || arm64

package pid1

// vfork creates a child that shares this process's memory, and waits until the child has executed a program or has ended. It returns 0 in
// the child, in which its caller must not return, and a negative errno on failure.
func vfork() (pid int64)
