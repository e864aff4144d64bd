//go:build !linux

package docker

import (
	"fmt"
	"os"
)

// self identifies this process for people.
func self() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// dead is never certain here: what a dead worker left is removed when it expires.
func dead(string) bool { return false }
