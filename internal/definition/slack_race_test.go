//go:build race

package definition

// slack is how much longer things may take under the race detector, on a
// machine that is busy with other packages' tests.
const slack = 20
