//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

var (
	moment string
	left   atomic.Int64
)

func init() {
	name, count, _ := strings.Cut(os.Getenv(Variable), ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	moment = name
	left.Store(n)
}

func Hit(name string) {
	if name != moment || left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, Said+"%s: ending this process\n", name)
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		os.Exit(137)
	}
	select {} // the signal is about to arrive
}

// HitAbout is Hit for one document, by its name.
func HitAbout(name, document string) { Hit(name + "=" + document) }
