//go:build unix

package docker

import (
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
)

// BenchmarkEightAtATime runs `true`: in sandboxes, in containers through this package, and in containers with only four calls of the
// engine's API (create, start, wait, remove). It reports runs per second.
func BenchmarkEightAtATime(b *testing.B) {
	host := dockertest.Engine(b)
	dockertest.Image(b, host, testImage)
	box, err := sandbox.New(sandbox.Options{Warm: 8})
	if err != nil {
		b.Skip(err)
	}
	defer box.Close()
	engine := dockertest.Client(b, host)
	docker := openRuntime(b, Options{Image: testImage})
	defer docker.Close()
	port := func(r runtime.Runtime) func() error {
		return func() error {
			started, err := r.Start(b.Context(), runtime.Spec{Name: "bench", Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}})
			if err != nil {
				return err
			}
			if result := started.Wait(); result.Verdict != runtime.OK {
				b.Errorf("%+v", result)
			}
			return nil
		}
	}
	bare := func() error {
		ctx := b.Context()
		made, err := engine.ContainerCreate(ctx, client.ContainerCreateOptions{
			Config: &container.Config{Image: testImage, Cmd: []string{"true"}}, HostConfig: &container.HostConfig{NetworkMode: "none"},
		})
		if err != nil {
			return err
		}
		wait := engine.ContainerWait(ctx, made.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		if _, err := engine.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
			return err
		}
		select {
		case <-wait.Result:
		case err := <-wait.Error:
			return err
		}
		_, err = engine.ContainerRemove(ctx, made.ID, client.ContainerRemoveOptions{})
		return err
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{{"sandbox", port(box)}, {"docker", port(docker)}, {"engine API", bare}} {
		b.Run(c.name, func(b *testing.B) {
			todo := make(chan struct{})
			var slots sync.WaitGroup
			for range 8 {
				slots.Go(func() {
					for range todo {
						if err := c.run(); err != nil {
							b.Error(err)
						}
					}
				})
			}
			begin := time.Now()
			for b.Loop() {
				todo <- struct{}{}
			}
			close(todo)
			slots.Wait()
			b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "runs/s")
		})
	}
}
