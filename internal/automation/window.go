package automation

import (
	"time"

	"github.com/pawl-run/pawl/internal/definition"
)

// WindowMost is how many signals one window holds: with the last of them it closes at once.
const WindowMost = 1000

// Wake is when a window closes that was opened at a moment and is joined now by its nth signal, unless another one comes before.
func Wake(d *definition.Debounce, opened, now time.Time, n int) time.Time {
	if n >= WindowMost {
		return now
	}
	wake := now.Add(d.Quiet)
	if most := opened.Add(d.AtMost); most.Before(wake) {
		return most
	}
	return wake
}
