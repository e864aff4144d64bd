package catalog

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var queueName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$`)

// CheckQueue returns what is wrong with the name of a queue.
func CheckQueue(name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("queue %.100q: a queue's name is 1 to 100 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit", name)
	}
	return nil
}

// Expect makes a queue known to this replica.
func (c *Catalog) Expect(name string) error {
	if err := CheckQueue(name); err != nil {
		return err
	}
	c.mu.Lock()
	c.queues[name] = true
	c.mu.Unlock()
	return nil
}

// PersistQueue makes a queue known to every replica, for good.
func (c *Catalog) PersistQueue(ctx context.Context, name string) error {
	err := PersistNames(ctx, c.store, store.QueueNames, name)
	if err != nil {
		return fmt.Errorf("declare queue %q: %w", name, err)
	}
	return nil
}

// DeclareQueues makes queues known to every replica, for good, in one transaction: a worker may serve 1,000. Their names have been checked.
func (c *Catalog) DeclareQueues(ctx context.Context, names []string) error {
	if err := PersistNames(ctx, c.store, store.QueueNames, slices.Sorted(slices.Values(names))...); err != nil {
		return fmt.Errorf("declare queue %q: %w", names[0], err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.queues[name] = true
	}
	return nil
}

// KnowsQueue reports whether a queue was ever declared or served.
func (c *Catalog) KnowsQueue(ctx context.Context, name string) (bool, error) {
	c.mu.Lock()
	known := c.queues[name]
	c.mu.Unlock()
	if known {
		return true, nil
	}
	if known, err := c.store.HasName(ctx, store.QueueNames, name); err != nil || !known {
		return false, err
	}
	c.mu.Lock()
	c.queues[name] = true
	c.mu.Unlock()
	return true, nil
}

// Queues are the names of all known queues, in order: those that a document or a server declares, those that a worker has ever served, and
// the default one.
func (c *Catalog) Queues(ctx context.Context) ([]string, error) {
	const page = 1000
	names := []string{flow.DefaultQueue}
	for after := ""; ; after = names[len(names)-1] {
		more, err := c.store.Names(ctx, store.QueueNames, after, page)
		if err != nil {
			return nil, fmt.Errorf("list queues: %w", err)
		}
		names = append(names, more...)
		if len(more) < page {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}

func UnknownQueue(name string) string {
	return fmt.Sprintf("no worker has ever served queue %.100q, and nothing declares it", name)
}

// QueueFix says how a queue becomes known.
func QueueFix(name string) string {
	return fmt.Sprintf("apply a document that declares it (kind: queue, name: %.100[1]s), start a worker that serves it (pawl worker --queues %.100[1]s), or leave the queue out", name)
}
