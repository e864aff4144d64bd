package docker

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// sweep removes the containers of dead workers, and all containers that have outlived their limits. It returns the
// number of removed containers.
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
		if r.remove(ctx, c.ID) == nil { // on failure another worker is removing it, or the next sweep will
			removed++
		}
	}
	return removed, nil
}

// orphaned reports whether a container's owner is certainly dead and no worker will come back for it.
func (r *Runtime) orphaned(labels map[string]string) bool {
	worker := labels[labelWorker]
	switch {
	case worker == "":
	case worker == r.options.Worker: // this process is that worker now
		return r.settled()
	case r.options.Returns != nil && r.options.Returns(worker):
		return false
	}
	return dead(labels[labelOwner])
}

// remove kills a running container and removes it with its volumes. A container that does not exist is no error.
func (r *Runtime) remove(ctx context.Context, id string) error {
	_, err := r.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove container %.12s: %w", id, err)
	}
	return nil
}
