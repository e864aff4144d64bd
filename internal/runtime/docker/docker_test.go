//go:build unix

package docker

import (
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

const testImage = "pawl-test/tools:1"

// open makes a runtime on the test engine.
func openRuntime(t testing.TB, o Options) *Runtime {
	t.Helper()
	o.Host = dockertest.Engine(t)
	dockertest.Image(t, o.Host, testImage)
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r.(*Runtime)
}

func factory(t testing.TB) runtime.Runtime { return openRuntime(t, Options{Image: testImage}) }

func TestConformance(t *testing.T) {
	host := dockertest.Engine(t)
	runtimetest.Exercise(t, factory, runtimetest.Races(100), runtimetest.Left(func(t testing.TB) []string {
		return dockertest.Containers(t, host, labelOwner+"="+self())
	}))
}
