//go:build amd64 || arm64

package pid1

// vfork makes a child that shares this process's memory, and waits until the child has executed a program or has ended. It returns 0 in the
// child, in which its caller must not return, and a negative errno when there is none.
func vfork() (pid int64)
