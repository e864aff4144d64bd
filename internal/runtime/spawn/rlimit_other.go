//go:build !linux

package spawn

// ownPriority does nothing: elsewhere threads have no nice value of their own.
func ownPriority() {}
