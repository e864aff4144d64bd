//go:build !race

package definition

// slack is how much longer things may take under the race detector.
const slack = 1
