//go:build unix && !linux

package runtimetest

import "testing"

// pidNamespace skips the test: hostile programs run only on systems with pid namespaces.
func pidNamespace(t testing.TB) string {
	t.Skip("the hostile programs need Linux")
	return ""
}

// makeDevice creates none: no test here would use it.
func makeDevice(string) bool { return false }
