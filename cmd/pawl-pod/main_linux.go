// Command pawl-pod is the helper in the pods of the Kubernetes runtime. It is not for people: its image is named by the
// setting kubernetes_helper_image, and pods execute it.
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

// collectAt has garbage collected at 0.8 MB, where Go's own 100 does so at 4 MB first. There are two of these processes
// in each pod, and what they hold at once is little. Process 1 that only watches its program makes no garbage.
const collectAt = 20

func main() {
	debug.SetGCPercent(collectAt)
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	var err error
	switch verb {
	case "keep": // the keeper; its argument is how long a run goes on without a worker
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
	case "reach": // pawl doctor's program; its argument is an address, or nothing
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

// lean executes process 1 once more, with the variable that tells Go's runtime before main begins how many processors
// it may use: it takes 36 KB for each, 2 MB on a node with 64, and one is enough. Where the image sets it, that stays,
// as the program is to see it; else the program sees none.
func lean() {
	const name, done = "GOMAXPROCS", "lean"
	if len(os.Args) > 2 {
		_ = os.Unsetenv(name)
	} else if _, set := os.LookupEnv(name); !set {
		_ = syscall.Exec(wire.Program, append(os.Args, done), append(os.Environ(), name+"=1"))
	}
}
