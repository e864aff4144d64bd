//go:build !linux

package docker

// profile is empty: the engine applies its own.
func profile() (string, error) { return "", nil }
