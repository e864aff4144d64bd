//go:build !linux

package spawn

// ownPriority does nothing: on other systems threads have no nice value of their own.
func ownPriority() {}
