//go:build race

package simulation

// The race detector costs a factor of ten.
const defaultSeeds = 200
