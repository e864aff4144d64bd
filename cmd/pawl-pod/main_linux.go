// Command pawl-pod is the helper in the pods of the Kubernetes runtime. Users do not run it: the setting
// kubernetes_helper_image names its image, and pods execute it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/pod"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// collectAt makes the first garbage collection run at 0.8 MB, where Go's default of 100 runs it at 4 MB. Each pod has
// two of these processes, which keep little memory alive. Process 1 allocates nothing while it watches its program.
const collectAt = 20

func main() {
	debug.SetGCPercent(collectAt)
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	var err error
	switch verb {
	case "keep": // the keeper; its argument is how long a run continues without a worker
		var orphan time.Duration
		if len(os.Args) != 3 {
			err = fmt.Errorf("usage: pawl-pod keep DURATION")
		} else if orphan, err = time.ParseDuration(os.Args[2]); err == nil {
			ends := make(chan os.Signal, 1)
			signal.Notify(ends, unix.SIGTERM, unix.SIGINT)
			err = pod.Keep(pod.Places{}, orphan, ends)
		}
	case "installed":
		for begin := time.Now(); !pod.Installed(pod.Places{}); time.Sleep(2 * time.Millisecond) {
			if time.Since(begin) > 30*time.Second {
				err = fmt.Errorf("the helper was not installed within 30s")
				break
			}
		}
	case "init":
		lean()
		os.Exit(pod.Init(pod.Places{}, wire.Program))
	case "become":
		pod.Become()
	case "reach": // the program of pawl doctor; its argument is an address, or missing
		if len(os.Args) == 3 && os.Args[2] != "" {
			fmt.Println(pod.Reach(os.Args[2]))
		}
	case "attach":
		err = pod.Attach(pod.Places{})
	default:
		err = fmt.Errorf("usage: pawl-pod keep|installed|init|attach; pods of Pawl's Kubernetes runtime execute this, people do not")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pawl-pod:", err)
		os.Exit(1)
	}
}

// lean executes process 1 once more, with the variable that tells Go's runtime before main starts how many processors
// to use: the runtime takes 36 KB per processor, 2 MB on a node with 64, and one is enough. If the image sets the
// variable, the program gets the image's value; otherwise the program does not get it.
func lean() {
	const name, done = "GOMAXPROCS", "lean"
	if len(os.Args) > 2 {
		_ = os.Unsetenv(name)
	} else if _, set := os.LookupEnv(name); !set {
		_ = syscall.Exec(wire.Program, append(os.Args, done), append(os.Environ(), name+"=1"))
	}
}
