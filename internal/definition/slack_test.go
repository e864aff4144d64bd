//go:build !race

package definition

// slack is how much longer things may take under the race detector.
const slack = 1

// mostData is the limit of the memory of a child process of a test, in bytes.
const mostData = 1 << 30
