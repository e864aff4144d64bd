package flow

import "time"

// BoundCleanup limits the clean-up of a workflow that was ordered to end. A later bound never replaces an earlier one.
func (d *Draft) BoundCleanup(until time.Time) {
	if c := d.State.Cancel; c != nil && d.Kind == KindWorkflow && !until.IsZero() && (c.Until.IsZero() || until.Before(c.Until)) {
		d.order(func(c *CancelOrder) { c.Until = until })
	}
}

// BeginCleanup records that some tasks of a workflow survive the order to end and run before its end.
func (d *Draft) BeginCleanup() { d.order(func(c *CancelOrder) { c.Cleaning = true }) }

// EndCleanup makes a workflow that was ordered to end skip its clean-up, or the rest of it. It reports whether that is new.
func (d *Draft) EndCleanup() bool {
	if c := d.State.Cancel; c == nil || c.Over || d.Kind != KindWorkflow {
		return false
	}
	d.order(func(c *CancelOrder) { c.Over = true })
	return true
}

// EndAtOnce makes an order to end skip the clean-up: a workflow starts no clean-up tasks and ends the running ones, and the program of
// another execution gets no grace. The tasks of a workflow end in the same way.
func (d *Draft) EndAtOnce() {
	if c := d.State.Cancel; c != nil && !c.Kill {
		d.order(func(c *CancelOrder) { c.Over, c.Kill = true, true })
	}
}

// KeyOrder records the idempotency key of the request with an order to end.
func (d *Draft) KeyOrder(key string) {
	if c := d.State.Cancel; c != nil && c.Key != key {
		d.order(func(c *CancelOrder) { c.Key = key })
	}
}

// order changes a copy of the order to end, because the loaded state shares it.
func (d *Draft) order(change func(*CancelOrder)) {
	c := *d.State.Cancel
	change(&c)
	d.State.Cancel = &c
}
