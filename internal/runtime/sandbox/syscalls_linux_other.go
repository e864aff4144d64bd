//go:build linux && !amd64 && !arm64

package sandbox

const nativeArch = 0

// syscallNumbers is nil on architectures without a table.
func syscallNumbers() map[string]uint32 { return nil }
