package flow

import "time"

// BoundCleanup lets the clean-up of a workflow that was ordered to end last no longer than until. The first bound of a workflow above stays
// where the workflow's own is later.
func (d *Draft) BoundCleanup(until time.Time) {
	if c := d.State.Cancel; c != nil && d.Kind == KindWorkflow && !until.IsZero() && (c.Until.IsZero() || until.Before(c.Until)) {
		d.order(func(c *CancelOrder) { c.Until = until })
	}
}

// BeginCleanup notes that tasks of a workflow survive the order to end it and are run before it ends.
func (d *Draft) BeginCleanup() { d.order(func(c *CancelOrder) { c.Cleaning = true }) }

// EndCleanup orders a workflow that was ordered to end to do so without clean-up, or without the rest of it. It reports whether that
// is new.
func (d *Draft) EndCleanup() bool {
	if c := d.State.Cancel; c == nil || c.Over || d.Kind != KindWorkflow {
		return false
	}
	d.order(func(c *CancelOrder) { c.Over = true })
	return true
}

// EndAtOnce has an order to end carried out without clean-up: a workflow runs no tasks for that, or none any more, and the program of
// another execution gets no grace. The tasks of a workflow are ended in the same way.
func (d *Draft) EndAtOnce() {
	if c := d.State.Cancel; c != nil && !c.Kill {
		d.order(func(c *CancelOrder) { c.Over, c.Kill = true, true })
	}
}

// KeyOrder notes the idempotency key of the request that an order to end comes from.
func (d *Draft) KeyOrder(key string) {
	if c := d.State.Cancel; c != nil && c.Key != key {
		d.order(func(c *CancelOrder) { c.Key = key })
	}
}

// order changes the order to end in a copy: the state that was loaded shares it.
func (d *Draft) order(change func(*CancelOrder)) {
	c := *d.State.Cancel
	change(&c)
	d.State.Cancel = &c
}
