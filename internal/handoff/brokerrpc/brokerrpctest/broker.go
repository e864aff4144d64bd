package brokerrpctest

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"testing"
	"time"
)

// Missing skips a test with a warning, and fails it if everything should be installed.
func Missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("PAWL_TEST_STRICT") != "" {
		t.Fatal(what)
	}
	t.Skip("NOT TESTED: " + what)
}

// URL is the URL of the broker in a variable, with a namespace of the test's own.
func URL(t *testing.T, variable string) string {
	t.Helper()
	base := os.Getenv(variable)
	if base == "" {
		Missing(t, variable+" names no broker. Run `eval \"$(scripts/services up)\"` first.")
	}
	raw := make([]byte, 6)
	rand.Read(raw) // never fails on the systems that Go supports
	return base + "?namespace=test-" + hex.EncodeToString(raw)
}

// Await waits until a started broker answers.
func Await(t *testing.T, most time.Duration, answers func() error) {
	t.Helper()
	deadline := time.Now().Add(most)
	for {
		err := answers()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the broker does not answer: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
}
