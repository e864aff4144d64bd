//go:build !race

package simulation

const defaultSeeds = 2000
