//go:build race

package simulation

// The race detector costs a factor of ten. It also makes Go shuffle the goroutines that are ready to run, so the simulation no longer
// controls the whole schedule. A failing seed may then need a few tries to fail again, and may not fail at all without the detector.
const (
	raceEnabled  = true
	defaultSeeds = 200
)
