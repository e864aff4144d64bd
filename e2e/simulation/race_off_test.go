//go:build !race

package simulation

const (
	raceEnabled  = false
	defaultSeeds = 2000
)
