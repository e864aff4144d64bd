//go:build race

package definition

import "math"

// slack is how much longer things may take under the race detector, on a
// machine that is busy with other packages' tests.
const slack = 20

// mostData is the limit of the memory of a child process of a test. The race detector maps some hundred times as much as the program has.
const mostData = math.MaxInt64
