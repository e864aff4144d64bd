//go:build !race

package counted

const raceEnabled = false
