package docker

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
)

// image is the part of an image's configuration that a run needs.
type image struct {
	id      string
	user    string
	workDir string
	argv    []string // entrypoint and command
}

// image finds the image of a run, and pulls it according to the pull policy.
func (r *Runtime) image(ctx context.Context, c *runtime.Container) (image, error) {
	pull := cmp.Or(c.Pull, r.options.Pull)
	if pull == runtime.PullAlways {
		if err := r.pull(ctx, c.Image); err != nil {
			return image{}, err
		}
	}
	found, err := r.engine.ImageInspect(ctx, c.Image)
	if errdefs.IsNotFound(err) {
		if pull != runtime.PullMissing {
			return image{}, fmt.Errorf("%w: docker: the engine does not have image %q and the pull policy is %s; pull it there, or let it be pulled",
				runtime.ErrUnavailable, c.Image, pull)
		}
		if err := r.pull(ctx, c.Image); err != nil {
			return image{}, err
		}
		found, err = r.engine.ImageInspect(ctx, c.Image)
	}
	if err != nil {
		return image{}, r.refused("look up image "+c.Image, err)
	}
	i := image{id: found.ID}
	if found.Config != nil {
		i.user, i.workDir = found.Config.User, found.Config.WorkingDir
		i.argv = append(append(i.argv, found.Config.Entrypoint...), found.Config.Cmd...)
	}
	return i, nil
}

func (r *Runtime) pull(ctx context.Context, name string) error {
	answer, err := r.engine.ImagePull(ctx, name, client.ImagePullOptions{})
	if err == nil {
		err = answer.Wait(ctx) // the engine reports a failure within the progress stream
		_ = answer.Close()
	}
	if err != nil {
		return r.refused("pull image "+name, err)
	}
	return nil
}

// userOf is the user that the program runs as. Without capabilities root is a user like any other, but it is also the
// host's root, so a program runs as root only if its Container names it.
func userOf(c *runtime.Container, i image) string {
	if c.User != "" {
		return c.User
	}
	user, _, _ := strings.Cut(i.user, ":")
	if user == "" || user == "root" || strings.Trim(user, "0") == "" {
		return nobody
	}
	return i.user
}

const nobody = "65534:65534"
