//go:build !race

package definition

// slack is the factor on durations under the race detector.
const slack = 1

// mostData is the memory limit of a child process of a test, in bytes.
const mostData = 1 << 30
