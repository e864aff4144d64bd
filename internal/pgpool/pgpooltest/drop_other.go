//go:build !linux

package pgpooltest

import (
	"errors"
	"net"
)

const canDrop = false

func drop(net.Conn) error { return errors.New("packets cannot be dropped on this system") }
