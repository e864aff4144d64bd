//go:build unix && !linux

package runtimetest

import "testing"

// pidNamespace skips: hostile programs run only where pid namespaces are.
func pidNamespace(t testing.TB) string {
	t.Skip("the hostile programs need Linux")
	return ""
}

// makeDevice makes none: nothing here would use it.
func makeDevice(string) bool { return false }
