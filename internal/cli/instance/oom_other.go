//go:build !linux

package instance

// PreferToKeep changes nothing here.
func PreferToKeep() {}
