//go:build race

package definition

import "math"

// slack is the factor on durations under the race detector, on a machine that is busy with other packages' tests.
const slack = 20

// mostData is the memory limit of a child process of a test. The race detector maps about a hundred times as much memory as the program
// has.
const mostData = math.MaxInt64
