//go:build !linux

package docker

// profile is empty: the engine applies its default.
func profile() (string, error) { return "", nil }
