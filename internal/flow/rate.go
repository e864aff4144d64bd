package flow

import (
	"fmt"
	"time"
)

// Rate bounds how often executions with a key begin: Limit in Per, and Burst of them at once.
type Rate struct {
	Key   string // "": no bound
	Limit int
	Per   time.Duration
	Burst int // 0 means 1: evenly spaced
	Over  Over
}

// Text writes a rate as in documents.
func (r *Rate) Text() string {
	if r.Burst > 1 {
		return fmt.Sprintf("%d per %s, burst %d", r.Limit, r.Per, r.Burst)
	}
	return fmt.Sprintf("%d per %s", r.Limit, r.Per)
}

// Over is what an execution does if the rate of its key is used up. The zero value is OverDelay.
type Over string

const (
	OverDelay Over = "delay" // it begins when there is room
	OverDrop  Over = "drop"  // it ends as cancelled
)
