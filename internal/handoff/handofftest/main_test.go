package handofftest_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// The tests of each backend wait for leases of 30 s to end, and compute little: with two at a time, one per processor, the package took
	// 153 s, of which 44 s were processor time.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
