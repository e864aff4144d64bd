//go:build !linux

package instance

// machineMemory is not known here, where no sandbox runs either.
func machineMemory(string) int64 { return 0 }
