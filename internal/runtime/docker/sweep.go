package docker

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// sweep removes the containers of workers that are no more, and those that have outlived their limits whoever made
// them. It returns how many it removed.
func (r *Runtime) sweep(ctx context.Context) (int, error) {
	found, err := r.engine.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", labelOwner),
	})
	if err != nil {
		return 0, fmt.Errorf("list containers: %w", err)
	}
	removed := 0
	for _, c := range found.Items {
		owner := c.Labels[labelOwner]
		expires, err := strconv.ParseInt(c.Labels[labelExpires], 10, 64)
		expired := err == nil && time.Now().Unix() > expires
		if owner == r.owner || r.claimed(c.ID, c.Labels) || !expired && !r.orphaned(c.Labels) {
			continue
		}
		if r.remove(ctx, c.ID) == nil { // else another worker is at it, or the next sweep will be
			removed++
		}
	}
	return removed, nil
}

// orphaned reports whether a container's owner is certainly dead and nobody will come for it.
func (r *Runtime) orphaned(labels map[string]string) bool {
	worker := labels[labelWorker]
	switch {
	case worker == "":
	case worker == r.options.Worker: // which this process is, now
		return r.settled()
	case r.options.Returns != nil && r.options.Returns(worker):
		return false
	}
	return dead(labels[labelOwner])
}

// remove kills a container that runs and removes it with its volumes. That there is none is as good.
func (r *Runtime) remove(ctx context.Context, id string) error {
	_, err := r.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove container %.12s: %w", id, err)
	}
	return nil
}
