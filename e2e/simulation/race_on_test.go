//go:build race

package simulation

// The race detector costs a factor of ten. It also makes Go shuffle the goroutines that are ready to run, so a schedule is
// the simulation's own no longer, and a seed that fails under it may need a few tries, without it none at all.
const (
	raceEnabled  = true
	defaultSeeds = 200
)
